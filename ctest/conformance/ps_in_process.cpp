#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_communicator.hpp"
#include "conformance/training.hpp"

namespace stratagem::test {
namespace {

constexpr double kib = 1.0 / 1024;

/// What rank 0 has in the end, of ranks that are threads whose interleaving `seed` decides.
Trained train_interleaved(Training const& training, int ranks, std::uint64_t seed) {
  Trained of_rank_0;
  run_ranks(ranks, seed, [&](Communicator& communicator) {
    auto trained = train(training, communicator);
    if (communicator.rank() == 0) of_rank_0 = std::move(trained);
  });
  return of_rank_0;
}

TEST(PsInProcess, SyncEqualsTheEmulatorWhateverTheInterleaving) {
  Training const training{.model = "tiny_residual",
                          .strategy = PsConfig{.servers = 2, .chunk_mb = 4 * kib},
                          .steps = 8};
  auto const expected = emulated(training, 3);
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    EXPECT_EQ(fingerprint(train_interleaved(training, 5, seed)), expected) << "seed " << seed;
}

/// Every mode ends, whatever the order of events, and the same order gives the same bits.
TEST(PsInProcess, EveryModeEndsAndRepeatsItself) {
  for (auto const mode : {PsMode::async, PsMode::ssp, PsMode::lag_cap, PsMode::dana, PsMode::dc}) {
    Training const training{
        .model = "tiny_residual",
        .strategy = PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = mode, .lag_cap = 2},
        .steps = 6};
    for (std::uint64_t seed = 1; seed <= 2; ++seed)
      EXPECT_EQ(fingerprint(train_interleaved(training, 5, seed)),
                fingerprint(train_interleaved(training, 5, seed)))
          << "mode " << static_cast<int>(mode) << ", seed " << seed;
  }
}

}  // namespace
}  // namespace stratagem::test
