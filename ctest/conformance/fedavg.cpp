#include <gtest/gtest.h>

#include "conformance/expected.hpp"
#include "conformance/local_workers.hpp"

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
      auto expected = world().rank() == 0 ? digest_alone(training) : "";
      world().broadcast(expected, 0);
      auto const communicator = make_communicator({}, discover_process(world()), world(), nullptr);
      EXPECT_EQ(digest_on(training, *communicator), expected) << "on rank " << world().rank();
    }
}

}  // namespace
}  // namespace stratagem::test
