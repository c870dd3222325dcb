#include <gtest/gtest.h>

#include "conformance/expected.hpp"
#include "crypto/primitives.hpp"

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

/// Masks leave no bit in the sum, whoever plays whom; those who are lost take theirs with them.
TEST(Fedavg, SecureSumsEqualPlainOnesBitForBit) {
  if (!crypto::available()) GTEST_SKIP() << "needs OpenSSL";
  auto const here = make_world({}, discover_process(world()), world(), nullptr);
  for (int const lost : {0, 3}) {
    FedAvgConfig const plain{.per_round = 12, .local_steps = 1, .lost = lost};
    auto all = plain, ring = plain;
    all.secure = ring.secure = SecureSum::pairwise;
    ring.neighbours = lost > 0 ? 6 : 4;  // of seven around each, whoever is lost leaves four
    ring.threshold = 4;
    auto const training_of = [](FedAvgConfig const& fedavg) {
      return Training{.model = "tiny_residual", .strategy = fedavg, .steps = 3, .compare_every = 2};
    };
    auto expected = world().rank() == 0 ? digest_alone(training_of(plain)) : "";
    world().broadcast(expected, 0);
    for (auto const& fedavg : {all, ring})
      EXPECT_EQ(digest_on(training_of(fedavg), here->all()), expected)
          << lost << " lost, on rank " << world().rank();
  }
}

}  // namespace
}  // namespace stratagem::test
