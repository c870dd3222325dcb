#include <gtest/gtest.h>

#include "strategy/ps/policy/worker_liveness.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;
using Workers = std::vector<int>;

/// Workers that are looked at every tenth of a second.
class Roll {
 public:
  explicit Roll(WatchdogConfig const& config) : liveness_(config, 2) { look(); }

  /// Those found missing meanwhile.
  Workers pass(std::chrono::milliseconds time) {
    Workers missing;
    for (auto const end = now_ + time; now_ < end;) {
      now_ += 100ms;
      for (int const worker : look()) missing.push_back(worker);
    }
    return missing;
  }
  Workers stop_all(std::chrono::seconds time) {
    now_ += time;
    return look();
  }
  void push(int worker, std::chrono::milliseconds time) {
    liveness_.expect(worker);
    pass(time);
    EXPECT_FALSE(liveness_.arrived(worker));
  }
  WorkerLiveness& liveness() { return liveness_; }

 private:
  Workers look() { return liveness_.look(now_); }

  WorkerLiveness liveness_;
  std::chrono::milliseconds now_ = 1h;
};

constexpr WatchdogConfig usual{.floor_s = 5, .factor = 5};

TEST(PsWorkerLiveness, WhoDoesNotPushForLongIsMissingUntilItDoes) {
  Roll roll(usual);
  roll.push(0, 200ms);
  roll.push(1, 200ms);
  for (int const worker : {0, 1}) roll.liveness().expect(worker);
  EXPECT_EQ(roll.pass(4s), Workers{});
  EXPECT_FALSE(roll.liveness().arrived(0));
  roll.liveness().expect(0);
  EXPECT_EQ(roll.pass(2s), Workers{1});
  EXPECT_EQ(roll.pass(2s), Workers{}) << "it is told once";
  EXPECT_TRUE(roll.liveness().arrived(1));
  EXPECT_FALSE(roll.liveness().finished(1));
}

TEST(PsWorkerLiveness, NobodyIsMissingBeforeAHugeLimit) {
  for (auto const& huge : {WatchdogConfig{.floor_s = 1e308, .factor = 5},
                           WatchdogConfig{.floor_s = 5, .factor = 1e308}}) {
    Roll roll(huge);
    roll.push(0, 200ms);
    roll.liveness().expect(0);
    EXPECT_EQ(roll.pass(30s), Workers{});
  }
}

TEST(PsWorkerLiveness, WhoHasComeMayTakeItsTimeForTheRest) {
  Roll roll(usual);
  roll.push(0, 2s);
  roll.liveness().expect(0);
  EXPECT_FALSE(roll.liveness().came(0));
  EXPECT_EQ(roll.pass(11s), Workers{0});
  EXPECT_TRUE(roll.liveness().missing(0));
  EXPECT_TRUE(roll.liveness().came(0));
  EXPECT_FALSE(roll.liveness().missing(0));
  EXPECT_EQ(roll.pass(7s), Workers{}) << "five times the two seconds of its last push";
  EXPECT_FALSE(roll.liveness().came(0)) << "nobody had missed it";
  EXPECT_EQ(roll.pass(2s), Workers{0}) << "it is silent again";
}

TEST(PsWorkerLiveness, WhoWaitsOrHasFinishedIsNotMissing) {
  Roll roll(usual);
  roll.push(0, 100ms);
  EXPECT_EQ(roll.pass(1min), Workers{});
  roll.liveness().expect(0);
  EXPECT_FALSE(roll.liveness().finished(0));
  EXPECT_EQ(roll.pass(1min), Workers{});
}

TEST(PsWorkerLiveness, LongPassesAreNoStall) {
  Roll roll(usual);
  roll.liveness().expect(0);
  EXPECT_EQ(roll.pass(1min), Workers{}) << "a first push takes what it takes";
  EXPECT_FALSE(roll.liveness().arrived(0));
  roll.push(0, 4s);
  roll.liveness().expect(0);
  EXPECT_EQ(roll.pass(19s), Workers{});
  EXPECT_EQ(roll.pass(2s), Workers{0});
  EXPECT_TRUE(roll.liveness().arrived(0));
  roll.liveness().expect(0);
  EXPECT_EQ(roll.pass(1min), Workers{}) << "it may have become as slow as that";
}

TEST(PsWorkerLiveness, ARoundThatEndsTellsNothingOfPushes) {
  Roll roll(usual);
  roll.push(0, 4s);
  roll.liveness().expect(0);
  EXPECT_FALSE(roll.liveness().finished(0));
  roll.liveness().expect(0);
  EXPECT_EQ(roll.pass(19s), Workers{});
}

TEST(PsWorkerLiveness, AStopOfTheWholeJobIsNone) {
  Roll roll(usual);
  roll.push(0, 100ms);
  roll.liveness().expect(0);
  EXPECT_EQ(roll.stop_all(1h), Workers{});
  EXPECT_EQ(roll.pass(3s), Workers{});
  EXPECT_EQ(roll.pass(2s), Workers{0});
}

TEST(PsWorkerLiveness, NobodyIsMissingWithoutAWatchdog) {
  Roll roll({.enabled = false});
  roll.push(0, 100ms);
  roll.liveness().expect(0);
  EXPECT_EQ(roll.pass(1min), Workers{});
}

}  // namespace
}  // namespace stratagem
