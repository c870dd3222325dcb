#include <utility>

#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"

namespace stratagem::test {
namespace {

/// Ranks as threads: the interleaving, which the seed decides, must not matter.
TEST(FsdpInProcess, EqualsTheEmulatorWhateverTheInterleaving) {
  Training training{.model = "tiny_residual", .steps = 8};
  for (int const ranks : {2, 3, 4}) {
    auto const expected = emulated(training, ranks);
    for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full}) {
      training.strategy = FsdpConfig{.shard = shard, .unit_mb = 1.0 / 1024, .poison = true};
      for (std::uint64_t seed = 0; seed < 3; ++seed)
        run_ranks(ranks, seed, [&](Communicator& communicator) {
          auto const own = fingerprint(train(training, communicator));
          if (communicator.rank() == 0) {
            EXPECT_EQ(own, expected) << ranks << " ranks, seed " << seed;
          }
        });
    }
  }
}

/// In each group, and among groups, too.
TEST(FsdpInProcess, ReplicasEqualTheEmulatorInGroupsWhateverTheInterleaving) {
  Training training{.model = "tiny_residual", .steps = 6};
  for (auto const& [ranks, replicas] : {std::pair(4, 2), {6, 2}, {6, 3}, {3, 3}}) {
    auto const expected = emulated(training, ranks, {.groups = replicas});
    for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full}) {
      training.strategy =
          FsdpConfig{.shard = shard, .replicas = replicas, .unit_mb = 1.0 / 1024, .poison = true};
      for (std::uint64_t seed = 0; seed < 3; ++seed)
        run_worlds(ranks, seed, [&](World& world) {
          auto const own = fingerprint(train(training, world));
          if (world.all().rank() == 0) {
            EXPECT_EQ(own, expected)
                << ranks << " ranks, " << replicas << " replicas, seed " << seed;
          }
        });
    }
  }
  EXPECT_NE(emulated(training, 4, {.groups = 2}), emulated(training, 4)) << "the order counts";
}

}  // namespace
}  // namespace stratagem::test
