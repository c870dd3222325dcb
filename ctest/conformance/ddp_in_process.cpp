#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"

namespace stratagem::test {
namespace {

/// Ranks as threads: the interleaving, which the seed decides, must not matter.
TEST(DdpInProcess, EqualsTheEmulatorWhateverTheInterleaving) {
  Training const training{
      .model = "tiny_residual", .strategy = DdpConfig{.bucket_mb = 1.0 / 1024}, .steps = 8};
  for (int const ranks : {2, 3, 4}) {
    auto const expected = emulated(training, ranks);
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      run_ranks(ranks, seed, [&](Communicator& communicator) {
        EXPECT_EQ(fingerprint(train(training, communicator)), expected)
            << "rank " << communicator.rank() << " of " << ranks << ", seed " << seed;
      });
  }
}

/// The emulator itself changes with the number of ranks it emulates: the comparison can fail.
TEST(DdpInProcess, EmulatorsOfDifferentSizesDiffer) {
  auto of = [](int ranks) { return emulated({.model = "tiny_residual", .steps = 8}, ranks); };
  EXPECT_NE(of(1), of(2));
  EXPECT_NE(of(2), of(4));
  EXPECT_EQ(of(3), of(3));
}

/// So the comparisons with model.fused on and off are of two ways.
TEST(DdpInProcess, FusedLayersHaveBitsOfTheirOwn) {
  EXPECT_NE(emulated({.model = "tiny_maps", .steps = 2}, 2),
            emulated({.model = "tiny_maps_not_fused", .steps = 2}, 2));
}

}  // namespace
}  // namespace stratagem::test
