#include <gtest/gtest.h>

#include "strategy/ps/policy/attendance.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;
using Workers = std::vector<int>;

/// Workers that are looked at every tenth of a second.
class Roll {
 public:
  explicit Roll(WatchdogConfig const& config) : attendance_(config, 2) { look(); }

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
    attendance_.expect(worker);
    pass(time);
    EXPECT_FALSE(attendance_.arrived(worker));
  }
  Attendance& attendance() { return attendance_; }

 private:
  Workers look() { return attendance_.look(now_); }

  Attendance attendance_;
  std::chrono::milliseconds now_ = 1h;
};

constexpr WatchdogConfig usual{.floor_s = 5, .factor = 5};

TEST(PsAttendance, WhoDoesNotPushForLongIsMissingUntilItDoes) {
  Roll roll(usual);
  roll.push(0, 200ms);
  roll.push(1, 200ms);
  for (int const worker : {0, 1}) roll.attendance().expect(worker);
  EXPECT_EQ(roll.pass(4s), Workers{});
  EXPECT_FALSE(roll.attendance().arrived(0));
  roll.attendance().expect(0);
  EXPECT_EQ(roll.pass(2s), Workers{1});
  EXPECT_EQ(roll.pass(2s), Workers{}) << "it is told once";
  EXPECT_TRUE(roll.attendance().arrived(1));
  EXPECT_FALSE(roll.attendance().finished(1));
}

TEST(PsAttendance, NobodyIsMissingBeforeAHugeLimit) {
  for (auto const& huge : {WatchdogConfig{.floor_s = 1e308, .factor = 5},
                           WatchdogConfig{.floor_s = 5, .factor = 1e308}}) {
    Roll roll(huge);
    roll.push(0, 200ms);
    roll.attendance().expect(0);
    EXPECT_EQ(roll.pass(30s), Workers{});
  }
}

TEST(PsAttendance, WhoHasComeMayTakeItsTimeForTheRest) {
  Roll roll(usual);
  roll.push(0, 2s);
  roll.attendance().expect(0);
  EXPECT_FALSE(roll.attendance().came(0));
  EXPECT_EQ(roll.pass(11s), Workers{0});
  EXPECT_TRUE(roll.attendance().missing(0));
  EXPECT_TRUE(roll.attendance().came(0));
  EXPECT_FALSE(roll.attendance().missing(0));
  EXPECT_EQ(roll.pass(7s), Workers{}) << "five times the two seconds of its last push";
  EXPECT_FALSE(roll.attendance().came(0)) << "nobody had missed it";
  EXPECT_EQ(roll.pass(2s), Workers{0}) << "it is silent again";
}

TEST(PsAttendance, WhoWaitsOrHasFinishedIsNotMissing) {
  Roll roll(usual);
  roll.push(0, 100ms);
  EXPECT_EQ(roll.pass(1min), Workers{});
  roll.attendance().expect(0);
  EXPECT_FALSE(roll.attendance().finished(0));
  EXPECT_EQ(roll.pass(1min), Workers{});
}

TEST(PsAttendance, LongPassesAreNoStall) {
  Roll roll(usual);
  roll.attendance().expect(0);
  EXPECT_EQ(roll.pass(1min), Workers{}) << "a first push takes what it takes";
  EXPECT_FALSE(roll.attendance().arrived(0));
  roll.push(0, 4s);
  roll.attendance().expect(0);
  EXPECT_EQ(roll.pass(19s), Workers{});
  EXPECT_EQ(roll.pass(2s), Workers{0});
  EXPECT_TRUE(roll.attendance().arrived(0));
  roll.attendance().expect(0);
  EXPECT_EQ(roll.pass(1min), Workers{}) << "it may have become as slow as that";
}

TEST(PsAttendance, ARoundThatEndsTellsNothingOfPushes) {
  Roll roll(usual);
  roll.push(0, 4s);
  roll.attendance().expect(0);
  EXPECT_FALSE(roll.attendance().finished(0));
  roll.attendance().expect(0);
  EXPECT_EQ(roll.pass(19s), Workers{});
}

TEST(PsAttendance, AStopOfTheWholeJobIsNone) {
  Roll roll(usual);
  roll.push(0, 100ms);
  roll.attendance().expect(0);
  EXPECT_EQ(roll.stop_all(1h), Workers{});
  EXPECT_EQ(roll.pass(3s), Workers{});
  EXPECT_EQ(roll.pass(2s), Workers{0});
}

TEST(PsAttendance, NobodyIsMissingWithoutAWatchdog) {
  Roll roll({.enabled = false});
  roll.push(0, 100ms);
  roll.attendance().expect(0);
  EXPECT_EQ(roll.pass(1min), Workers{});
}

}  // namespace
}  // namespace stratagem
