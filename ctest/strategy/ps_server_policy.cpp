#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategy/ps/policy/pull_schedule.hpp"
#include "strategy/ps/policy/server_policy.hpp"
#include "strategy/ps/ps_config.hpp"

namespace stratagem {
namespace {

using Gate = ServerPolicy::Gate;
using Momentum = ServerPolicy::Momentum;
using Pulls = ServerPolicy::Pulls;
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
  ServerPolicy const by_gap{.weight = Weight::inverse_gap};
  EXPECT_EQ(treat(by_gap, 9).weight, 1) << "its elements count by themselves";
  ServerPolicy const attenuated{.lag_cap = 3, .over_cap = ServerPolicy::OverCap::attenuate};
  EXPECT_EQ(treat(attenuated, 3).weight, 1);
  EXPECT_TRUE(treat(attenuated, 12).apply);
  EXPECT_EQ(treat(attenuated, 12).weight, 0.25);
}

TEST(PsServerPolicy, ModesAreChoicesOfParts) {
  auto of = [](PsConfig const& config) { return policy_of(config, 4); };
  EXPECT_FALSE(of({.mode = PsMode::sync}).asynchronous());
  EXPECT_EQ(of({.mode = PsMode::async}).gate, Gate::none);
  EXPECT_EQ(of({.mode = PsMode::ssp}).staleness, 2);
  EXPECT_EQ(of({.mode = PsMode::lag_cap}).lag_cap, 4);
  EXPECT_EQ(of({.mode = PsMode::dana}).momentum, Momentum::look_ahead);
  EXPECT_GT(of({.mode = PsMode::dc}).correction, 0);
  EXPECT_FALSE(of({.mode = PsMode::dc}).correction_decay);
  EXPECT_EQ(of({.mode = PsMode::dc_adaptive}).correction, 2);
  EXPECT_EQ(of({.mode = PsMode::dc_adaptive}).correction_decay, 0.95);
  EXPECT_EQ(of({.mode = PsMode::gap_aware}).weight, Weight::inverse_gap);
  EXPECT_EQ(of({.mode = PsMode::softsync}).count, 4);
  EXPECT_EQ(of({.mode = PsMode::softsync, .count = 9}).count, 9);
  EXPECT_EQ(of({.mode = PsMode::backup}).count, 3);
  EXPECT_EQ(of({.mode = PsMode::backup, .backup = 2}).count, 2);
  auto const delayed = of({.mode = PsMode::delayed_sync});
  EXPECT_FALSE(delayed.asynchronous());
  EXPECT_EQ(delayed.delay, 1);
  EXPECT_EQ(delayed.momentum, Momentum::look_ahead);
  auto const modified = of({.mode = PsMode::modified});
  EXPECT_EQ(modified.gate, Gate::ssp);
  EXPECT_EQ(modified.weight, Weight::inverse_lag);
  EXPECT_EQ(modified.pushes, 2);
  EXPECT_EQ(of({.mode = PsMode::async, .warm_start = 7}).warm_start, 7);
}

TEST(PsServerPolicy, PartsReplaceThoseOfTheMode) {
  auto const policy = policy_of({.mode = PsMode::async,
                                 .staleness = 0,
                                 .lag_cap = 7,
                                 .over_cap = ServerPolicy::OverCap::attenuate,
                                 .weight = Weight::inverse_gap,
                                 .dc_lambda = 0.5,
                                 .momentum = Momentum::per_worker,
                                 .pushes = 3},
                                2);
  EXPECT_EQ(policy.gate, Gate::ssp);
  EXPECT_EQ(policy.staleness, 0);
  EXPECT_EQ(policy.lag_cap, 7);
  EXPECT_EQ(policy.over_cap, ServerPolicy::OverCap::attenuate);
  EXPECT_EQ(policy.weight, Weight::inverse_gap);
  EXPECT_EQ(policy.correction, 0.5);
  EXPECT_EQ(policy.momentum, Momentum::per_worker);
  EXPECT_EQ(policy.pushes, 3);
  EXPECT_EQ(policy_of({.mode = PsMode::async, .pull_every = 4}, 2).pull_every, 4);
  EXPECT_FALSE(policy_of({.mode = PsMode::ssp, .cached_reads = true}, 2).always_pulls());
  EXPECT_EQ(policy_of({.mode = PsMode::async, .backup = 1}, 2).gate, Gate::backup);
  EXPECT_EQ(policy_of({.mode = PsMode::ssp, .gate = Gate::none}, 2).gate, Gate::none);
  EXPECT_EQ(policy_of({.mode = PsMode::dc, .dc_decay = 0}, 2).correction_decay, 0);
  auto const without = policy_of({.mode = PsMode::dc_adaptive, .dc_lambda = 0}, 2);
  EXPECT_TRUE(without.state_kinds().empty());
  auto const delayed = policy_of({.momentum = Momentum::look_ahead, .delay = 1}, 2);
  EXPECT_FALSE(delayed.asynchronous());
  EXPECT_EQ(delayed.delay, 1);
}

struct Contradiction {
  std::string named;
  PsConfig config;
};

TEST(PsServerPolicy, PartsThatContradictOneAnotherAreNamed) {
  auto const cap = ServerPolicy::OverCap::drop;
  for (auto const& [named, config] : std::vector<Contradiction>{
           {"staleness", {.staleness = 1}},
           {"lag_cap", {.lag_cap = 1}},
           {"dc_lambda", {.dc_lambda = 1}},
           {"dc_decay", {.dc_decay = 0.5}},
           {"dc_decay without", {.mode = PsMode::async, .dc_decay = 0.5}},
           {"dc_decay", {.mode = PsMode::backup, .dc_decay = 0.5}},
           {"momentum", {.momentum = Momentum::shared}},
           {"weight", {.weight = Weight::one}},
           {"pushes", {.pushes = 2}},
           {"pull_every", {.pull_every = 2}},
           {"mode", {.mode = PsMode::dana, .gate = Gate::bsp}},
           {"momentum", {.mode = PsMode::delayed_sync, .momentum = Momentum::per_worker}},
           {"delay", {.mode = PsMode::async, .delay = 1}},
           {"delay", {.mode = PsMode::delayed_sync, .gate = Gate::none}},
           {"count", {.mode = PsMode::ssp, .count = 2}},
           {"staleness", {.mode = PsMode::softsync, .staleness = 2}},
           {"backup", {.mode = PsMode::softsync, .backup = 1}},
           {"over_cap", {.mode = PsMode::async, .over_cap = cap}},
           {"pull_every", {.mode = PsMode::ssp, .pull_every = 2}},
           {"pull_every", {.mode = PsMode::backup, .pull_every = 2}},
           {"momentum", {.mode = PsMode::softsync, .momentum = Momentum::look_ahead}},
           {"lag_cap", {.mode = PsMode::backup, .lag_cap = 2}},
           {"weight", {.mode = PsMode::backup, .weight = Weight::inverse_lag}},
           {"backup: 3 of 3", {.mode = PsMode::backup, .backup = 3}},
           {"servers: 2", {.servers = 2, .mode = PsMode::backup}},
           {"gate together with warm_start", {.warm_start = 2}},
           {"momentum together with warm_start", {.mode = PsMode::dana, .warm_start = 2}},
           {"pull_every", {.mode = PsMode::async, .pull_every = 2, .warm_start = 2}},
           {"pull_every together with pull_at_lag",
            {.mode = PsMode::async, .pull_every = 2, .pull_at_lag = 2}},
           {"pull_at_lag together with gate bsp", {.pull_at_lag = 2}},
           {"pull_at_lag together with gate ssp", {.mode = PsMode::ssp, .pull_at_lag = 2}},
           {"cached_reads together with gate bsp", {.cached_reads = true}},
           {"cached_reads together with gate none", {.mode = PsMode::async, .cached_reads = true}},
           {"weight together with cached_reads", {.mode = PsMode::modified, .cached_reads = true}},
           {"lag_cap together with cached_reads",
            {.mode = PsMode::ssp, .lag_cap = 2, .cached_reads = true}},
           {"dc_lambda together with cached_reads",
            {.mode = PsMode::ssp, .dc_lambda = 2, .cached_reads = true}},
           {"pull_every together with cached_reads",
            {.mode = PsMode::ssp, .pull_every = 2, .cached_reads = true}},
           {"pull_at_lag together with cached_reads",
            {.mode = PsMode::ssp, .pull_at_lag = 2, .cached_reads = true}},
           {"pulls together with cached_reads",
            {.mode = PsMode::ssp, .cached_reads = true, .pulls = Pulls::chunkwise}},
           {"cached_reads together with warm_start",
            {.mode = PsMode::ssp, .cached_reads = true, .warm_start = 2}},
           {"pulls together with gate bsp", {.pulls = Pulls::chunkwise}},
           {"pulls together with gate backup", {.mode = PsMode::backup, .pulls = Pulls::chunkwise}},
       })
    try {
      static_cast<void>(policy_of(config, 3));
      ADD_FAILURE() << named;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find("." + named), std::string::npos) << error.what();
    }
}

TEST(PsServerPolicy, LagCountsTheUpdatesOfOthers) {
  ServerClock clock({}, 3);
  EXPECT_EQ(clock.push(0, {}).lag, 0);
  EXPECT_EQ(clock.release(), std::vector{0});
  EXPECT_EQ(clock.push(0, {}).lag, 0);
  auto const second = clock.push(1, {});
  EXPECT_EQ(second.base_version, 0);
  EXPECT_EQ(second.lag, 2);
  EXPECT_EQ(second.applied_version, 3);
  EXPECT_EQ(clock.release(), (std::vector{0, 1}));
  EXPECT_EQ(clock.push(2, {}).lag, 3);
  EXPECT_EQ(clock.push(1, {}).lag, 1);
}

TEST(PsServerPolicy, ADroppedPushMakesNoVersion) {
  ServerClock clock({.lag_cap = 1}, 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(clock.push(0, {}).applied);
    static_cast<void>(clock.release());
  }
  auto const verdict = clock.push(1, {});
  EXPECT_FALSE(verdict.applied);
  EXPECT_EQ(verdict.lag, 2);
  EXPECT_EQ(clock.version(), 2);
  EXPECT_EQ(clock.release(), std::vector{1});
  EXPECT_EQ(clock.push(1, {}).lag, 0);
}

TEST(PsServerPolicy, NobodyWaitsForAPushThatOverflowed) {
  ServerClock clock({.gate = Gate::backup, .count = 2}, 3);
  for (int const worker : {0, 1}) {
    auto const verdict = clock.push(worker, {.usable = false});
    EXPECT_FALSE(verdict.applied);
    EXPECT_FALSE(verdict.completes);
    EXPECT_EQ(verdict.applied_version, 0);
    EXPECT_EQ(clock.release(), std::vector{worker});
  }
  EXPECT_TRUE(clock.push(0, {}).applied);
  EXPECT_TRUE(clock.push(2, {}).completes);
}

TEST(PsServerPolicy, StalenessZeroIsLockstep) {
  ServerClock clock({.gate = Gate::ssp}, 2);
  static_cast<void>(clock.push(0, {}));
  EXPECT_TRUE(clock.release().empty());
  static_cast<void>(clock.push(1, {}));
  EXPECT_EQ(clock.release(), (std::vector{0, 1}));
}

TEST(PsServerPolicy, SoftsyncMakesAnUpdateOfSeveralPushes) {
  ServerClock clock({.gate = Gate::softsync, .count = 2}, 2);
  auto const first = clock.push(0, {});
  EXPECT_FALSE(first.completes);
  EXPECT_EQ(first.applied_version, 1) << "of the update it waits for";
  EXPECT_EQ(clock.version(), 0);
  EXPECT_EQ(clock.release(), std::vector{0}) << "it goes on at once";
  EXPECT_TRUE(clock.push(0, {}).completes);
  EXPECT_EQ(clock.version(), 1);
  EXPECT_EQ(clock.push(1, {}).lag, 1);
  static_cast<void>(clock.release());
  EXPECT_FALSE(clock.finish(0));
  EXPECT_TRUE(clock.finish(1)) << "nothing is left over at the end";
  EXPECT_EQ(clock.version(), 2);
}

TEST(PsServerPolicy, BackupGoesOnWithoutTheSlowest) {
  ServerClock clock({.gate = Gate::backup, .count = 2}, 3);
  EXPECT_FALSE(clock.push(0, {}).completes);
  EXPECT_TRUE(clock.release().empty()) << "it waits for another";
  EXPECT_TRUE(clock.push(1, {}).completes);
  EXPECT_EQ(clock.release(), (std::vector{0, 1}));
  auto const late = clock.push(2, {});
  EXPECT_FALSE(late.applied);
  EXPECT_EQ(late.applied_version, 1);
  EXPECT_EQ(clock.release(), std::vector{2});
  static_cast<void>(clock.push(2, {}));
  EXPECT_FALSE(clock.finish(0)) << "worker 1 may still push";
  EXPECT_TRUE(clock.finish(1)) << "nobody else will";
  EXPECT_EQ(clock.release(), std::vector{2});
}

TEST(PsServerPolicy, AWorkerThatDoesNotPullKeepsItsVersion) {
  ServerClock clock({}, 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(clock.lag(0), i);
    EXPECT_EQ(clock.push(0, {.pulls = false}).base_version, 0);
    EXPECT_TRUE(clock.computing(0));
  }
  EXPECT_EQ(clock.push(0, {}).lag, 2);
  EXPECT_FALSE(clock.computing(0));
  EXPECT_EQ(clock.release(), std::vector{0});
  EXPECT_EQ(clock.push(0, {}).base_version, 3);
}

/// Steps of others that what a worker has may lack, compared with its own.
TEST(PsServerPolicy, CachedParametersMayBeReadUntilTheyAreTooOld) {
  ServerClock clock({.gate = Gate::ssp, .staleness = 3, .cached_reads = true}, 2);
  for (int push = 0; push < 3; ++push) static_cast<void>(clock.push(0, {.pulls = false}));
  EXPECT_TRUE(clock.computing(0)) << "it goes on with what it has";
  static_cast<void>(clock.push(1, {.pulls = true}));
  EXPECT_EQ(clock.release(), std::vector{1});
  EXPECT_EQ(clock.cached_reads(1), 3) << "it is the slowest";
  static_cast<void>(clock.push(0, {.pulls = true}));
  EXPECT_EQ(clock.release(), std::vector{0}) << "three ahead";
  EXPECT_EQ(clock.cached_reads(0), 0);
  static_cast<void>(clock.push(0, {.pulls = true}));
  EXPECT_EQ(clock.release(), std::vector<int>());
  static_cast<void>(clock.push(1, {.pulls = false}));
  static_cast<void>(clock.push(1, {.pulls = false}));
  EXPECT_EQ(clock.release(), std::vector{0});
  EXPECT_EQ(clock.cached_reads(0), 1) << "two ahead";
  clock.finish(1);
  EXPECT_EQ(clock.cached_reads(0), 3) << "nobody else is under way";
}

TEST(PsServerPolicy, NobodyWaitsForOneWhoHasFinished) {
  ServerClock clock({.gate = Gate::ssp}, 2);
  static_cast<void>(clock.push(0, {}));
  EXPECT_TRUE(clock.release().empty());
  clock.finish(1);
  EXPECT_EQ(clock.release(), std::vector{0});
  EXPECT_FALSE(clock.all_finished());
  clock.finish(0);
  EXPECT_TRUE(clock.all_finished());
}

TEST(PsServerPolicy, NobodyWaitsForOneWhoIsMissing) {
  ServerClock clock({.gate = Gate::ssp, .staleness = 1}, 3);
  auto const push_and_release = [&](int worker) {
    static_cast<void>(clock.push(worker, {}));
    return clock.release();
  };
  EXPECT_EQ(push_and_release(0), std::vector{0});
  EXPECT_EQ(push_and_release(2), std::vector{2});
  EXPECT_EQ(push_and_release(0), std::vector<int>()) << "it is two ahead of worker 1";
  EXPECT_FALSE(clock.exclude(1));
  EXPECT_EQ(clock.release(), std::vector{0}) << "and one ahead of worker 2";
  for (int i = 0; i < 10; ++i)
    for (int const worker : {2, 0}) EXPECT_EQ(push_and_release(worker), std::vector{worker});
  auto const late = clock.push(1, {});
  EXPECT_FALSE(late.applied) << "it is of long ago";
  EXPECT_EQ(late.lag, 23);
  EXPECT_EQ(clock.release(), std::vector{1});
  EXPECT_EQ(clock.push(1, {}).lag, 0);
  EXPECT_EQ(clock.release(), std::vector<int>()) << "two ahead of worker 2, as which it counted";
  EXPECT_EQ(push_and_release(2), (std::vector{1, 2}));
  for (int const worker : {0, 2, 0, 2}) EXPECT_EQ(push_and_release(worker), std::vector{worker});
  EXPECT_EQ(push_and_release(0), std::vector<int>()) << "worker 1 is the slowest, and waited for";
  EXPECT_EQ(push_and_release(1), (std::vector{0, 1}));
}

TEST(PsServerPolicy, AnUpdateDoesNotWaitForOneWhoIsMissing) {
  for (auto const& policy :
       {ServerPolicy{.gate = Gate::backup, .count = 2}, ServerPolicy{.warm_start = 100}}) {
    ServerClock clock(policy, 3);
    EXPECT_FALSE(clock.exclude(1));
    EXPECT_FALSE(clock.push(0, {}).completes);
    EXPECT_TRUE(clock.exclude(2)) << "who is left has pushed";
    EXPECT_EQ(clock.release(), std::vector{0});
    auto const late = clock.push(1, {});
    EXPECT_FALSE(late.applied);
    EXPECT_EQ(clock.release(), std::vector{1});
    EXPECT_FALSE(clock.push(1, {}).completes) << "worker 0 is waited for";
    EXPECT_TRUE(clock.push(0, {}).completes);
    EXPECT_EQ(clock.version(), 2);
    EXPECT_EQ(clock.release(), (std::vector{0, 1}));
    for (int const worker : {0, 1, 2}) clock.finish(worker);
    EXPECT_TRUE(clock.all_finished());
    clock.restart();
    EXPECT_FALSE(clock.push(0, {}).completes) << "in a new round all are waited for";
  }
}

TEST(PsServerPolicy, WhereNobodyWaitsNobodyIsExcluded) {
  ServerClock clock({}, 2);
  EXPECT_FALSE(clock.exclude(1));
  static_cast<void>(clock.push(0, {}));
  EXPECT_TRUE(clock.push(1, {}).applied);
}

TEST(PsServerPolicy, AWarmStartGoesTogether) {
  ServerClock clock({.warm_start = 2}, 3);
  for (std::int64_t step = 0; step < 2; ++step) {
    for (int const worker : {2, 0}) {
      EXPECT_FALSE(clock.push(worker, {.step = step}).completes);
      EXPECT_EQ(clock.release(), std::vector<int>()) << "one has not pushed";
    }
    auto const last = clock.push(1, {.step = step});
    EXPECT_TRUE(last.completes);
    EXPECT_EQ(last.lag, 0);
    EXPECT_EQ(last.weight, 1);
    EXPECT_EQ(clock.release(), (std::vector{0, 1, 2}));
    EXPECT_EQ(clock.version(), step + 1);
  }
  EXPECT_TRUE(clock.push(1, {.step = 2}).completes);
  EXPECT_EQ(clock.release(), std::vector{1}) << "it waits for nobody any more";
  EXPECT_EQ(clock.push(0, {.step = 2}).lag, 1);
}

TEST(PsServerPolicy, AWarmStartDoesNotWaitForWhoHasFinishedOrOverflowed) {
  ServerClock clock({.warm_start = 9}, 3);
  EXPECT_FALSE(clock.push(0, {.usable = false}).applied);
  EXPECT_EQ(clock.release(), std::vector{0});
  static_cast<void>(clock.push(1, {}));
  static_cast<void>(clock.push(2, {}));
  EXPECT_EQ(clock.release(), std::vector<int>());
  EXPECT_TRUE(clock.finish(0)) << "who is left has pushed";
  EXPECT_EQ(clock.release(), (std::vector{1, 2}));
}

TEST(PsServerPolicy, ARoundStartsWithThePresentVersion) {
  ServerClock clock({}, 2);
  static_cast<void>(clock.push(0, {}));
  static_cast<void>(clock.release());
  clock.finish(0);
  clock.finish(1);
  clock.restart();
  EXPECT_EQ(clock.push(1, {}).lag, 0);
  EXPECT_EQ(clock.version(), 2);
}

/// Workers that push at random times, each with a speed and a number of pushes of its own.
struct Crowd {
  ServerPolicy policy;
  int workers;
  std::uint64_t seed;
  std::int64_t events;
  bool overflows = false;  ///< every eighth push, at random
  bool misses = false;     ///< one of 64 times somebody is missing until it pushes
};

/// Fewest pushes of those that have not finished.
std::int64_t least_of(std::vector<std::int64_t> const& pushes,
                      std::vector<std::int64_t> const& left) {
  std::int64_t least = 1LL << 62;
  for (std::size_t i = 0; i < left.size(); ++i)
    if (left[i] >= 0) least = std::min(least, pushes[i]);
  return least;
}

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
  std::vector<PullSchedule> paces(left.size(), PullSchedule(crowd.policy));
  std::vector<bool> missing(left.size(), false);
  std::vector<std::int64_t> seen(left.size(), 0);  // steps of the slowest in what a worker has
  std::int64_t applied = 0, dropped = 0, done = 0, updates = 0;
  for (std::uint64_t event = 0; !clock.all_finished(); ++event) {
    ASSERT_FALSE(ready.empty()) << "everybody waits";
    // The lower half of the workers is four times as fast as the rest.
    auto pick = random.word(2 * event) % ready.size();
    if (ready[pick] >= crowd.workers / 2 && random.word(2 * event + 1) % 4 != 0)
      pick = random.word(2 * event + 1) / 4 % ready.size();
    int const worker = ready[pick];
    auto const w = static_cast<std::size_t>(worker);
    auto const other = static_cast<std::size_t>(ready[random.word(event, 3) % ready.size()]);
    if (crowd.misses && random.word(event, 4) % 64 == 0 && !missing[other]) {
      missing[other] = true;
      if (clock.exclude(static_cast<int>(other))) ++updates;
    }
    // In a warm start who has overflowed goes on, as nobody could without it.
    bool const bounded = crowd.policy.gate == Gate::ssp && !crowd.misses &&
                         (!crowd.overflows || crowd.policy.warm_start == 0);
    if (bounded && left[w] > 0) {
      ASSERT_GE(seen[w] + crowd.policy.staleness, pushes[w]) << "of a gradient that is computed";
    }
    auto const before = clock.version();
    bool const is_back = missing[w];
    missing[w] = false;
    if (left[w]-- == 0) {
      if (clock.finish(worker)) ++updates;
    } else {
      bool const usable = !crowd.overflows || random.word(event, 2) % 8 != 0;
      bool const pulls = paces[w].next();
      paces[w].learn(clock.lag(worker));
      auto const verdict =
          clock.push(worker, {.step = pushes[w], .usable = usable, .pulls = pulls});
      ++pushes[w];
      ++done;
      ASSERT_GE(verdict.lag, 0);
      ASSERT_EQ(verdict.lag, before - verdict.base_version);
      ASSERT_EQ(clock.version(), before + (verdict.completes ? 1 : 0));
      ++(verdict.applied ? applied : dropped);
      updates += verdict.completes ? 1 : 0;
      if (crowd.policy.lag_cap > 0) {
        ASSERT_EQ(verdict.applied, usable && verdict.lag <= crowd.policy.lag_cap);
      }
      if (crowd.policy.gate == Gate::backup) {
        ASSERT_EQ(verdict.applied, usable && verdict.lag == 0 && !is_back);
      }
    }
    ASSERT_LE(clock.version() - before, 1);
    if (!clock.computing(worker)) ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    auto const least = least_of(pushes, left);
    for (int const next : clock.release()) {
      ready.push_back(next);
      seen[static_cast<std::size_t>(next)] = least;
      if (crowd.policy.cached_reads)
        paces[static_cast<std::size_t>(next)].allow(clock.cached_reads(next));
    }
    if (bounded && left[w] >= 0) {
      ASSERT_LE(pushes[w] - least, crowd.policy.staleness + 1);
    }
  }
  ASSERT_EQ(applied + dropped, done);
  ASSERT_EQ(clock.version(), updates);
  if (!crowd.policy.collects()) {
    ASSERT_EQ(updates, applied);
  }
}

TEST(PsServerPolicy, BoundsHoldAndAllFinishWhateverTheOrder) {
  for (auto const& policy :
       {ServerPolicy{}, ServerPolicy{.gate = Gate::ssp},
        ServerPolicy{.gate = Gate::ssp, .staleness = 3}, ServerPolicy{.lag_cap = 2},
        ServerPolicy{.gate = Gate::ssp, .staleness = 1, .lag_cap = 4},
        ServerPolicy{.gate = Gate::ssp, .staleness = 3, .cached_reads = true},
        ServerPolicy{.gate = Gate::softsync, .count = 3}, ServerPolicy{.pull_every = 3},
        ServerPolicy{.gate = Gate::softsync, .count = 40, .lag_cap = 1},
        ServerPolicy{.lag_cap = 5, .pull_every = 4}, ServerPolicy{.pull_at_lag = 9},
        ServerPolicy{.gate = Gate::softsync, .count = 3, .pull_at_lag = 2},
        ServerPolicy{.warm_start = 50},
        ServerPolicy{.gate = Gate::ssp, .staleness = 1, .warm_start = 7},
        ServerPolicy{.gate = Gate::softsync, .count = 3, .warm_start = 20}})
    for (int const workers : {1, 2, 5, 16})
      for (bool const overflows : {false, true})
        expect_bounds_and_an_end(
            {policy, workers, static_cast<std::uint64_t>(workers), 10'000, overflows});
}

TEST(PsServerPolicy, BackupsNeverWaitForOneAnother) {
  for (int const workers : {2, 3, 5, 16})
    for (std::int64_t const count : {1, workers / 2, workers - 1})
      expect_bounds_and_an_end({{.gate = Gate::backup, .count = std::max<std::int64_t>(count, 1)},
                                workers,
                                static_cast<std::uint64_t>(workers),
                                10'000,
                                workers > 2});
}

TEST(PsServerPolicy, AllFinishWhoeverIsMissing) {
  for (auto const& policy : {ServerPolicy{}, ServerPolicy{.gate = Gate::ssp, .staleness = 2},
                             ServerPolicy{.gate = Gate::backup, .count = 2},
                             ServerPolicy{.gate = Gate::ssp, .pull_every = 2},
                             ServerPolicy{.gate = Gate::ssp, .staleness = 4, .cached_reads = true},
                             ServerPolicy{.gate = Gate::softsync, .count = 3, .warm_start = 20},
                             ServerPolicy{.warm_start = 500}})
    for (int const workers : {3, 5, 16})
      expect_bounds_and_an_end({.policy = policy,
                                .workers = workers,
                                .seed = static_cast<std::uint64_t>(workers),
                                .events = 10'000,
                                .overflows = true,
                                .misses = true});
}

TEST(PsServerPolicy, BoundsHoldForAMillionPushes) {
  expect_bounds_and_an_end({{.gate = Gate::ssp, .staleness = 2}, 8, 1, 1'000'000});
  expect_bounds_and_an_end({{.lag_cap = 6}, 8, 2, 1'000'000});
  expect_bounds_and_an_end(
      {{.gate = Gate::ssp, .staleness = 5, .cached_reads = true}, 8, 3, 1'000'000});
}

TEST(PsServerPolicy, BoundsHoldFor1024Workers) {
  expect_bounds_and_an_end({{.gate = Gate::ssp, .staleness = 2}, 1024, 1, 10'000});
  expect_bounds_and_an_end({{.lag_cap = 1024}, 1024, 2, 100'000});
  expect_bounds_and_an_end({{.gate = Gate::backup, .count = 1000}, 1024, 3, 100'000});
}

}  // namespace
}  // namespace stratagem
