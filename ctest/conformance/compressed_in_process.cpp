#include <cstdlib>

#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"

namespace stratagem::test {
namespace {

/// Of interleavings, by which ranks hear of each other sooner or later. More for a closer look.
std::uint64_t seeds() {
  auto const* given = std::getenv("STRATAGEM_SEEDS");
  return given == nullptr ? 5 : static_cast<std::uint64_t>(std::strtoull(given, nullptr, 10));
}

constexpr double kib = 1.0 / 1024;

void expect_equal_in_all_interleavings(StrategyConfig const& strategy, SerialConfig const& serial) {
  Training const training{.model = "tiny_residual", .strategy = strategy, .steps = 5};
  for (int const ranks : {2, 3, 4}) {
    auto const expected = emulated(training, ranks, serial);
    for (std::uint64_t seed = 0; seed < seeds(); ++seed)
      run_ranks(ranks, seed, [&](Communicator& communicator) {
        auto const own = fingerprint(train(training, communicator));
        if (communicator.rank() > 0) return;
        ASSERT_EQ(own, expected) << ranks << " ranks, seed " << seed;
      });
  }
}

/// Ranks as threads: the interleaving, which the seed decides, must not matter.
TEST(CompressedInProcess, EqualsTheEmulatorWhateverTheInterleaving) {
  for (auto const code : {Code::int8, Code::sign}) {
    Compression const compression{code, Rounding::stochastic, true};
    expect_equal_in_all_interleavings(DdpConfig{.bucket_mb = kib, .compression = compression},
                                      {.compression = compression});
    expect_equal_in_all_interleavings(FsdpConfig{.unit_mb = kib, .compression = compression},
                                      {.compression = compression, .compressed_sums = false});
  }
}

TEST(CompressedInProcess, GathersOfCodesDoWhateverTheInterleaving) {
  for (auto const shard : {Shard::gradients, Shard::full})
    expect_equal_in_all_interleavings(
        FsdpConfig{.shard = shard, .unit_mb = kib, .parameter_compression = Code::int8},
        {.parameter_compression = Code::int8});
}

TEST(CompressedInProcess, OtherCodesDoWhateverTheInterleaving) {
  for (Compression const& compression :
       {Compression{.code = Code::top_k, .error_feedback = true, .ratio = 0.1},
        Compression{.code = Code::random_k,
        .error_feedback = true,
        .ratio = 0.1,
        .momentum_correction = true},
        Compression{.code = Code::low_rank, .error_feedback = true}})
    expect_equal_in_all_interleavings(DdpConfig{.bucket_mb = kib, .compression = compression},
                                      {.compression = compression});
}

/// Servers and their workers likewise.
TEST(CompressedInProcess, PushesEqualTheEmulatorWhateverTheInterleaving) {
  for (auto const code : {Code::int4, Code::sign})
    for (auto const transport : {PsConfig::Transport::two_sided, PsConfig::Transport::rma}) {
      Compression const compression{code, Rounding::stochastic, true};
      Training const training{.model = "tiny_residual",
                              .strategy = PsConfig{.servers = 2,
                                                   .chunk_mb = 4 * kib,
                                                   .transport = transport,
                                                   .compression = compression},
                              .steps = 5};
      for (int const workers : {1, 2, 3}) {
        auto const expected =
            emulated(training, workers, {.compression = compression, .compressed_sums = false});
        for (std::uint64_t seed = 0; seed < seeds(); ++seed)
          run_ranks(workers + 2, seed, [&](Communicator& communicator) {
            auto const own = fingerprint(train(training, communicator));
            if (communicator.rank() > 0) return;
            ASSERT_EQ(own, expected) << workers << " workers, seed " << seed;
          });
      }
    }
}

}  // namespace
}  // namespace stratagem::test
