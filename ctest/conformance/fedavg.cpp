#include <gtest/gtest.h>

#include "conformance/expected.hpp"

namespace stratagem::test {
namespace {

/// Twelve drawn clients, which 1, 2, 3 and 4 ranks share out evenly.
TEST(Fedavg, EqualsItselfOnOneRankBitForBit) {
  FedAvgConfig const shards{.per_round = 12, .local_steps = 3, .split = Split::shards};
  FedAvgConfig const skewed{.clients = 20,
                            .per_round = 12,
                            .local_steps = 2,
                            .split = Split::dirichlet,
                            .split_alpha = 2,
                            .server_lr = 0.7,
                            .server_momentum = 0.9,
                            .micro_batches = 2};
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd"})
    for (auto const& fedavg : {shards, skewed}) {
      SCOPED_TRACE(model);
      Training const training{
          .model = model, .strategy = fedavg, .steps = 5, .global_batch = 24, .compare_every = 2};
      expect_same_as_on_one_rank(training);
    }
}

}  // namespace
}  // namespace stratagem::test
