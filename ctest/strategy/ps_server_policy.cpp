#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategy/ps/ps_config.hpp"
#include "strategy/ps/server_policy.hpp"

namespace stratagem {
namespace {

using Gate = ServerPolicy::Gate;
using Momentum = ServerPolicy::Momentum;
using Weight = ServerPolicy::Weight;

TEST(PsServerPolicy, AGradientCountsByItsLag) {
  ServerPolicy const plain;
  EXPECT_TRUE(treat(plain, 1000).apply);
  EXPECT_EQ(treat(plain, 1000).weight, 1);
  ServerPolicy const capped{.lag_cap = 3};
  EXPECT_TRUE(treat(capped, 3).apply);
  EXPECT_FALSE(treat(capped, 4).apply);
  ServerPolicy const by_age{.weight = Weight::inverse_lag};
  EXPECT_EQ(treat(by_age, 0).weight, 1);
  EXPECT_EQ(treat(by_age, 1).weight, 1);
  EXPECT_EQ(treat(by_age, 4).weight, 0.25);
}

TEST(PsServerPolicy, ModesAreChoicesOfParts) {
  auto of = [](PsConfig const& config) { return policy_of(config, 4); };
  EXPECT_FALSE(of({.mode = PsMode::sync}).asynchronous());
  EXPECT_EQ(of({.mode = PsMode::async}).gate, Gate::none);
  EXPECT_EQ(of({.mode = PsMode::ssp}).staleness, 2);
  EXPECT_EQ(of({.mode = PsMode::lag_cap}).lag_cap, 4);
  EXPECT_EQ(of({.mode = PsMode::dana}).momentum, Momentum::look_ahead);
  EXPECT_GT(of({.mode = PsMode::dc}).correction, 0);
}

TEST(PsServerPolicy, PartsReplaceThoseOfTheMode) {
  auto const policy = policy_of({.mode = PsMode::async,
                                 .staleness = 0,
                                 .lag_cap = 7,
                                 .dc_lambda = 0.5,
                                 .momentum = Momentum::per_worker,
                                 .weight = Weight::inverse_lag},
                                2);
  EXPECT_EQ(policy.gate, Gate::ssp);
  EXPECT_EQ(policy.staleness, 0);
  EXPECT_EQ(policy.lag_cap, 7);
  EXPECT_EQ(policy.correction, 0.5);
  EXPECT_EQ(policy.momentum, Momentum::per_worker);
  EXPECT_EQ(policy.weight, Weight::inverse_lag);
}

TEST(PsServerPolicy, PartsThatContradictSyncAreNamed) {
  std::map<std::string, PsConfig> const contradictions{{"staleness", {.staleness = 1}},
                                                       {"lag_cap", {.lag_cap = 1}},
                                                       {"dc_lambda", {.dc_lambda = 1}},
                                                       {"momentum", {.momentum = Momentum::shared}},
                                                       {"weight", {.weight = Weight::one}}};
  for (auto const& [part, config] : contradictions) try {
      static_cast<void>(policy_of(config, 2));
      ADD_FAILURE() << part;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos);
    }
}

TEST(PsServerPolicy, LagCountsTheUpdatesOfOthers) {
  ServerClock clock({}, 3);
  EXPECT_EQ(clock.push(0).lag, 0);
  EXPECT_EQ(clock.release(), std::vector{0});
  EXPECT_EQ(clock.push(0).lag, 0);
  auto const second = clock.push(1);
  EXPECT_EQ(second.base_version, 0);
  EXPECT_EQ(second.lag, 2);
  EXPECT_EQ(second.applied_version, 3);
  EXPECT_EQ(clock.release(), (std::vector{0, 1}));
  EXPECT_EQ(clock.push(2).lag, 3);
  EXPECT_EQ(clock.push(1).lag, 1);
}

TEST(PsServerPolicy, ADroppedPushMakesNoVersion) {
  ServerClock clock({.lag_cap = 1}, 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(clock.push(0).applied);
    static_cast<void>(clock.release());
  }
  auto const verdict = clock.push(1);
  EXPECT_FALSE(verdict.applied);
  EXPECT_EQ(verdict.lag, 2);
  EXPECT_EQ(clock.version(), 2);
  EXPECT_EQ(clock.release(), std::vector{1});
  EXPECT_EQ(clock.push(1).lag, 0);
}

TEST(PsServerPolicy, StalenessZeroIsLockstep) {
  ServerClock clock({.gate = Gate::ssp}, 2);
  static_cast<void>(clock.push(0));
  EXPECT_TRUE(clock.release().empty());
  static_cast<void>(clock.push(1));
  EXPECT_EQ(clock.release(), (std::vector{0, 1}));
}

TEST(PsServerPolicy, NobodyWaitsForOneWhoHasFinished) {
  ServerClock clock({.gate = Gate::ssp}, 2);
  static_cast<void>(clock.push(0));
  EXPECT_TRUE(clock.release().empty());
  clock.finish(1);
  EXPECT_EQ(clock.release(), std::vector{0});
  EXPECT_FALSE(clock.all_finished());
  clock.finish(0);
  EXPECT_TRUE(clock.all_finished());
}

TEST(PsServerPolicy, ARoundStartsWithThePresentVersion) {
  ServerClock clock({}, 2);
  static_cast<void>(clock.push(0));
  static_cast<void>(clock.release());
  clock.finish(0);
  clock.finish(1);
  clock.restart();
  EXPECT_EQ(clock.push(1).lag, 0);
  EXPECT_EQ(clock.version(), 2);
}

/// Workers that push at random times, each with a speed and a number of pushes of its own.
struct Crowd {
  ServerPolicy policy;
  int workers;
  std::uint64_t seed;
  std::int64_t events;
};

/// Lets the crowd go until all have finished, and checks after every event what must always hold.
void expect_bounds_and_an_end(Crowd const& crowd) {
  CounterRandom const random(crowd.seed, "crowd");
  ServerClock clock(crowd.policy, crowd.workers);
  auto const share = crowd.events / crowd.workers;
  std::vector<int> ready;  // workers that may push or finish
  std::vector<std::int64_t> left;
  for (int worker = 0; worker < crowd.workers; ++worker) {
    ready.push_back(worker);
    left.push_back(1 + random.word(static_cast<std::uint64_t>(worker), 1) % (2 * share));
  }
  std::vector<std::int64_t> pushes(left.size(), 0);
  std::int64_t applied = 0, dropped = 0, done = 0;
  for (std::uint64_t event = 0; !clock.all_finished(); ++event) {
    ASSERT_FALSE(ready.empty()) << "everybody waits";
    // The lower half of the workers is four times as fast as the rest.
    auto pick = random.word(2 * event) % ready.size();
    if (ready[pick] >= crowd.workers / 2 && random.word(2 * event + 1) % 4 != 0)
      pick = random.word(2 * event + 1) / 4 % ready.size();
    int const worker = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    auto const w = static_cast<std::size_t>(worker);
    if (left[w]-- == 0) {
      clock.finish(worker);
    } else {
      auto const before = clock.version();
      auto const verdict = clock.push(worker);
      ++pushes[w];
      ++done;
      ASSERT_GE(verdict.lag, 0);
      ASSERT_EQ(verdict.lag, before - verdict.base_version);
      ASSERT_EQ(clock.version(), before + (verdict.applied ? 1 : 0));
      ++(verdict.applied ? applied : dropped);
      if (crowd.policy.lag_cap > 0) {
        ASSERT_EQ(verdict.applied, verdict.lag <= crowd.policy.lag_cap);
      }
    }
    for (int const next : clock.release()) ready.push_back(next);
    if (crowd.policy.gate != Gate::ssp) continue;
    std::int64_t least = 1LL << 62, most = 0;
    for (std::size_t i = 0; i < left.size(); ++i)
      if (left[i] >= 0) {
        least = std::min(least, pushes[i]);
        most = std::max(most, pushes[i]);
      }
    if (least <= most) {
      ASSERT_LE(most - least, crowd.policy.staleness + 1);
    }
  }
  ASSERT_EQ(applied + dropped, done);
  ASSERT_EQ(clock.version(), applied);
}

TEST(PsServerPolicy, BoundsHoldAndAllFinishWhateverTheOrder) {
  for (auto const& policy :
       {ServerPolicy{}, ServerPolicy{.gate = Gate::ssp},
        ServerPolicy{.gate = Gate::ssp, .staleness = 3}, ServerPolicy{.lag_cap = 2},
        ServerPolicy{.gate = Gate::ssp, .staleness = 1, .lag_cap = 4}})
    for (int const workers : {1, 2, 5, 16})
      expect_bounds_and_an_end({policy, workers, static_cast<std::uint64_t>(workers), 10'000});
}

TEST(PsServerPolicy, BoundsHoldFor1024Workers) {
  expect_bounds_and_an_end({{.gate = Gate::ssp, .staleness = 2}, 1024, 1, 10'000});
  expect_bounds_and_an_end({{.lag_cap = 1024}, 1024, 2, 100'000});
}

}  // namespace
}  // namespace stratagem
