#include <cstdlib>

#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_communicator.hpp"
#include "conformance/training.hpp"

namespace stratagem::test {
namespace {

/// Of interleavings, by which ranks hear of each other sooner or later. More for a closer look.
std::uint64_t seeds() {
  auto const* given = std::getenv("STRATAGEM_SEEDS");
  return given == nullptr ? 5 : static_cast<std::uint64_t>(std::strtoull(given, nullptr, 10));
}

/// Ranks as threads: the interleaving, which the seed decides, must not matter.
TEST(CompressedInProcess, EqualsTheEmulatorWhateverTheInterleaving) {
  for (auto const code : {Code::int8, Code::sign}) {
    Compression const compression{code, Rounding::stochastic, true};
    Training const training{
        .model = "tiny_residual",
        .strategy = DdpConfig{.bucket_mb = 1.0 / 1024, .compression = compression},
        .steps = 5};
    for (int const ranks : {2, 3, 4}) {
      auto const expected = emulated(training, ranks, {.compression = compression});
      for (std::uint64_t seed = 0; seed < seeds(); ++seed)
        run_ranks(ranks, seed, [&](Communicator& communicator) {
          ASSERT_EQ(fingerprint(train(training, communicator)), expected)
              << "rank " << communicator.rank() << " of " << ranks << ", seed " << seed;
        });
    }
  }
}

}  // namespace
}  // namespace stratagem::test
