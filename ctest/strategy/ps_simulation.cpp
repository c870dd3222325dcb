#include <gtest/gtest.h>

#include "conformance/one_process.hpp"
#include "strategy/ps/offline/simulation.hpp"

namespace stratagem::test {
namespace {

std::vector<std::string> const nothing;

Training training_of(PsConfig const& ps) {
  return {.model = "tiny_residual", .strategy = ps, .steps = 10, .steps_per_round = 6};
}

TEST(PsSimulation, OfSyncIsTheEmulatorBitForBit) {
  for (int const workers : {1, 3})
    for (bool const nesterov : {false, true}) {
      auto training = training_of({});
      training.optimizer.rule = SgdConfig{.nesterov = nesterov};
      EXPECT_EQ(differences(simulate(training, workers).parameters,
                            train_emulated(training, workers).parameters),
                nothing);
    }
}

TEST(PsSimulation, OfOneAsynchronousWorkerIsSerialBitForBit) {
  auto const training = training_of({.mode = PsMode::async});
  EXPECT_EQ(differences(simulate(training, 1).parameters, train_emulated(training, 1).parameters),
            nothing);
}

/// Where nobody else pushes, no gradient is late: it is applied as it is.
TEST(PsSimulation, TreatsNoGradientOfOneWorker) {
  for (auto const mode : {PsMode::ssp, PsMode::lag_cap, PsMode::dc, PsMode::dc_adaptive,
                          PsMode::gap_aware, PsMode::softsync}) {
    auto const training = training_of({.mode = mode});
    EXPECT_EQ(differences(simulate(training, 1).parameters, train_emulated(training, 1).parameters),
              nothing)
        << static_cast<int>(mode);
  }
}

Training cached_training(int staleness) {
  auto training = training_of({.mode = PsMode::ssp, .staleness = staleness, .cached_reads = true});
  training.optimizer.rule = SgdConfig{.momentum = 0};
  return training;
}

/// It sees its own updates, though it hardly pulls.
TEST(PsSimulation, OneWorkerWithCachedReadsIsSerialBitForBit) {
  for (int const staleness : {0, 1, 4, 100}) {
    auto const training = cached_training(staleness);
    auto const cached = simulate(training, 1);
    EXPECT_EQ(differences(cached.parameters, train_emulated(training, 1).parameters), nothing);
    // Of 6 and 4 pushes, every (staleness + 1)-th.
    EXPECT_EQ(cached.counts.pulls, 6 / (staleness + 1) + 4 / (staleness + 1));
  }
}

TEST(PsSimulation, CachedReadsSavePullsWithinTheBound) {
  auto const slow = ClusterModel{.jitter = 0.4, .slow_worker = 0, .slow = 2};
  auto plain = cached_training(0);
  std::get<PsConfig>(plain.strategy).cached_reads = false;
  EXPECT_EQ(differences(simulate(cached_training(0), 3, slow).parameters,
                        simulate(plain, 3, slow).parameters),
            nothing)
      << "nothing may be old";
  auto const counts = simulate(cached_training(3), 3, slow).counts;
  EXPECT_EQ(counts.pushes, 30);
  EXPECT_LT(counts.pulls, 15);
  EXPECT_GT(counts.pulls, 0);
  EXPECT_EQ(counts.dropped, 0);
}

TEST(PsSimulation, AWarmStartIsSyncBitForBit) {
  auto const sync = simulate(training_of({}), 2).parameters;
  auto const warm =
      simulate(training_of({.mode = PsMode::async, .warm_start = 10}), 2, {.jitter = 0.4});
  EXPECT_EQ(differences(warm.parameters, sync), nothing);
  EXPECT_EQ(warm.counts.updates, 10);
  auto const short_one = simulate(training_of({.mode = PsMode::async, .warm_start = 4}), 2);
  EXPECT_EQ(short_one.counts.updates, 4 + 2 * 6);
}

TEST(PsSimulation, IsTheEmulatorUnderLossScalingAndClipping) {
  for (auto const mode : {PsMode::sync, PsMode::async}) {
    int const workers = mode == PsMode::sync ? 3 : 1, micro_batches = 12 / workers;
    auto training = training_of({.mode = mode, .micro_batches = micro_batches});
    training.optimizer.clip_norm = 0.5;
    training.precision = scaled_bf16;
    training.counters = overflowing();
    auto const end = simulate(training, workers);
    auto const expected = train_emulated(training, workers, {.micro_batches = micro_batches});
    EXPECT_EQ(differences(end.parameters, expected.parameters), nothing);
    EXPECT_GT(end.counts.overflowed, 0);
    EXPECT_EQ(end.counts.overflowed, expected.skipped * workers);
    EXPECT_EQ(end.counts.dropped, end.counts.overflowed);
  }
}

TEST(PsSimulation, TheSeedDecidesEveryBit) {
  auto const training = training_of({.mode = PsMode::dana});
  ClusterModel cluster{.jitter = 0.5};
  auto const one = simulate(training, 3, cluster);
  EXPECT_EQ(differences(simulate(training, 3, cluster).parameters, one.parameters), nothing);
  cluster.seed = 2;
  EXPECT_NE(differences(simulate(training, 3, cluster).parameters, one.parameters), nothing);
}

TEST(PsSimulation, EveryPolicyDoesEveryShare) {
  for (auto const& ps :
       {PsConfig{.mode = PsMode::ssp}, PsConfig{.mode = PsMode::modified},
        PsConfig{.mode = PsMode::lag_cap, .lag_cap = 1}, PsConfig{.mode = PsMode::dc},
        PsConfig{.mode = PsMode::dc_adaptive}, PsConfig{.mode = PsMode::gap_aware},
        PsConfig{.mode = PsMode::softsync}, PsConfig{.mode = PsMode::backup},
        PsConfig{.mode = PsMode::delayed_sync}, PsConfig{.mode = PsMode::async, .pull_every = 3},
        PsConfig{.mode = PsMode::async, .pull_at_lag = 7},
        PsConfig{.mode = PsMode::async, .warm_start = 4}}) {
    auto const counts = simulate(training_of(ps), 3, {.jitter = 0.4}).counts;
    EXPECT_EQ(counts.pushes, 30 * policy_of(ps, 3).pushes) << static_cast<int>(ps.mode);
    EXPECT_EQ(counts.dropped > 0, ps.mode == PsMode::lag_cap || ps.mode == PsMode::backup);
  }
}

TEST(PsSimulation, PullsAreMadeWhenTheLagAsksForThem) {
  auto const counts = [](std::optional<int> every, int at_lag) {
    return simulate(
               training_of({.mode = PsMode::async, .pull_every = every, .pull_at_lag = at_lag}), 3,
               {.jitter = 0.1})
        .counts;
  };
  auto const always = counts({}, 0), rare = counts(3, 0), adapted = counts({}, 6);
  EXPECT_EQ(always.pulls, 30);
  EXPECT_EQ(rare.pulls, 9) << "of rounds of 18 and 12 pushes of 3 workers, about every third";
  EXPECT_LT(adapted.pulls, 24);
  EXPECT_GT(adapted.pulls, 9);
  EXPECT_GT(adapted.lags.mean(), always.lags.mean());
  EXPECT_LE(adapted.lags.most(), 8) << "two more than asked for, by the jitter";
}

TEST(PsSimulation, OnlyAsynchronyHidesASlowWorker) {
  ClusterModel const cluster{.slow_worker = 0, .slow = 4};
  auto const time = [&](PsMode mode) {
    return simulate(training_of({.mode = mode}), 4, cluster).counts.time;
  };
  auto const sync = time(PsMode::sync);
  EXPECT_LT(time(PsMode::async), 0.6 * sync);
  EXPECT_LT(time(PsMode::dana), 0.6 * sync);
}

}  // namespace
}  // namespace stratagem::test
