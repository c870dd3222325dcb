#include <algorithm>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/one_process.hpp"
#include "strategy/ps/parameter_store.hpp"

namespace stratagem::test {
namespace {

constexpr double kib = 1.0 / 1024;
constexpr auto chunkwise = ServerPolicy::Pulls::chunkwise;

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
  for (auto const transport : {PsConfig::Transport::two_sided, PsConfig::Transport::rma}) {
    Training const training{
        .model = "tiny_residual",
        .strategy = PsConfig{.servers = 2, .chunk_mb = 4 * kib, .transport = transport},
        .steps = 8};
    auto const expected = emulated(training, 3);
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      EXPECT_EQ(fingerprint(train_interleaved(training, 5, seed)), expected) << "seed " << seed;
  }
}

TEST(PsInProcess, SyncEqualsTheEmulatorUnderLossScalingWhateverTheInterleaving) {
  Training const training{.model = "tiny_residual",
                          .strategy = PsConfig{.servers = 3, .chunk_mb = 4 * kib},
                          .precision = scaled_bf16,
                          .steps = 10,
                          .counters = overflowing()};
  auto const expected = emulated(training, 2);
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    EXPECT_EQ(fingerprint(train_interleaved(training, 5, seed)), expected) << "seed " << seed;
}

TEST(PsInProcess, DelayedSyncEqualsItsSimulationWhateverTheInterleaving) {
  Training const training{
      .model = "tiny_residual",
      .strategy = PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::delayed_sync},
      .steps = 9,
      .steps_per_round = 4};
  auto const expected = simulate(training, 3).parameters;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    EXPECT_EQ(differences(train_interleaved(training, 5, seed).parameters, expected),
              std::vector<std::string>())
        << "seed " << seed;
}

/// Looking ahead along the momenta of all workers is Nesterov's rule where there is one worker, bit
/// for bit until a round ends: the next one begins with the parameters that are looked ahead from,
/// which is also what is evaluated and saved.
TEST(PsInProcess, DanaOfOneWorkerIsNesterovUntilARoundEnds) {
  Training training{.model = "tiny_residual",
                    .strategy = PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::dana},
                    .steps = 20};
  auto const dana = train_interleaved(training, 3, 1);
  auto nesterov = training;
  nesterov.optimizer.rule = SgdConfig{.nesterov = true};
  auto const expected = train_emulated(nesterov, 1);
  EXPECT_EQ(dana.losses, expected.losses);
  EXPECT_EQ(dana.correct, expected.correct);
  EXPECT_EQ(differences(dana.kept, expected.kept), std::vector<std::string>());
  EXPECT_EQ(differences(dana.buffers, expected.buffers), std::vector<std::string>());
  auto const ahead = training.optimizer.lr * momentum_of(training.optimizer);
  for (std::size_t i = 0; i < dana.parameters.size(); ++i)
    EXPECT_TRUE(at::allclose(dana.parameters[i].second - ahead * dana.kept[i].second,
                             expected.parameters[i].second, 1e-5, 1e-7))
        << dana.parameters[i].first;
  training.steps_per_round = 10;
  auto const rounds = train_interleaved(training, 3, 1).losses;
  EXPECT_TRUE(std::equal(rounds.begin(), rounds.begin() + 10, dana.losses.begin()));
  EXPECT_NE(rounds[10], dana.losses[10]);
}

/// Their optimizer has no momentum.
TEST(PsInProcess, CachedReadsEndAndRepeatThemselves) {
  Training training{.model = "tiny_residual",
                    .strategy = PsConfig{.servers = 2,
                                         .chunk_mb = 4 * kib,
                                         .mode = PsMode::ssp,
                                         .staleness = 3,
                                         .cached_reads = true},
                    .optimizer = {.lr = 0.1, .rule = SgdConfig{.momentum = 0}},
                    .steps = 9,
                    .steps_per_round = 5};
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    if (seed == 3) {  // a worker does not apply what overflowed
      training.precision = scaled_bf16;
      training.counters = overflowing();
    }
    EXPECT_EQ(fingerprint(train_interleaved(training, 5, seed)),
              fingerprint(train_interleaved(training, 5, seed)))
        << "seed " << seed;
  }
}

/// Every mode ends, whatever the order of events, and the same order gives the same bits.
TEST(PsInProcess, EveryModeEndsAndRepeatsItself) {
  for (auto const& ps :
       {PsConfig{.servers = 2, .mode = PsMode::async, .pull_every = 2},
        PsConfig{.servers = 2, .mode = PsMode::ssp, .lag_cap = 2},
        PsConfig{.servers = 2, .mode = PsMode::modified},
        PsConfig{.servers = 2, .mode = PsMode::lag_cap, .lag_cap = 2},
        PsConfig{.servers = 2, .mode = PsMode::dana}, PsConfig{.servers = 2, .mode = PsMode::dc},
        PsConfig{.servers = 2, .mode = PsMode::dc_adaptive},
        PsConfig{.servers = 2, .mode = PsMode::gap_aware},
        PsConfig{.servers = 2, .mode = PsMode::softsync},
        PsConfig{.servers = 2, .mode = PsMode::async, .warm_start = 3},
        PsConfig{.servers = 2, .mode = PsMode::async, .pull_at_lag = 4},
        PsConfig{.servers = 2, .mode = PsMode::dana, .pulls = chunkwise},
        PsConfig{.servers = 2, .mode = PsMode::modified, .pulls = chunkwise},
        PsConfig{.servers = 2, .mode = PsMode::softsync, .pulls = chunkwise},
        PsConfig{.servers = 2, .mode = PsMode::ssp, .pulls = chunkwise, .warm_start = 3},
        PsConfig{.servers = 2, .mode = PsMode::delayed_sync},
        PsConfig{.servers = 2,
        .mode = PsMode::modified,
        .compression = {Code::sign, Rounding::stochastic, true}},
        PsConfig{.servers = 1, .mode = PsMode::backup}}) {
    auto chunked = ps;
    chunked.chunk_mb = 4 * kib;
    Training training{
        .model = "tiny_residual", .strategy = chunked, .steps = 6, .steps_per_round = 4};
    int const ranks = 3 + ps.servers;
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      if (seed == 2 && !ps.compression.on()) {  // nobody waits for a push that was dropped
        training.precision = scaled_bf16;
        training.counters = overflowing();
      }
      EXPECT_EQ(fingerprint(train_interleaved(training, ranks, seed)),
                fingerprint(train_interleaved(training, ranks, seed)))
          << "mode " << static_cast<int>(ps.mode) << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace stratagem::test
