#include "trace/beacon.hpp"

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "trace/recorder.hpp"

namespace stratagem::trace {
namespace {

using namespace std::chrono_literals;

TEST(Beacon, ShowsWhereARankIsAndThatItGoesOn) {
  Sign sign;
  Recorder recorder({}, 0, &sign);
  EXPECT_EQ(recorder.beacon().where().substr(0, 9), "init: for");
  recorder.begin_step(7, 0);
  recorder.enter(Phase::backward);
  auto const marks = sign.marks.load();
  EXPECT_EQ(sign.activity, Activity::backward);
  EXPECT_EQ(sign.step, 7);
  EXPECT_EQ(recorder.beacon().where().substr(0, 21), "step 7, backward: for");
  recorder.enter(Phase::optimizer);
  EXPECT_GT(sign.marks, marks);
  recorder.end_step();
  EXPECT_EQ(sign.activity, Activity::between);
  recorder.enter(Activity::evaluate, 8);
  EXPECT_EQ(sign.activity, Activity::evaluate);
}

TEST(Beacon, WaitingIsShownAsLongAsItLasts) {
  Sign sign;
  Beacon beacon(&sign);
  beacon.enter(Activity::comm_exposed, 3);
  {
    Beacon::Wait const wait(&beacon, "all_reduce");
    EXPECT_TRUE(sign.waits);
    auto const where = beacon.where();
    EXPECT_NE(where.find("step 3, comm_exposed: has waited"), std::string::npos) << where;
    EXPECT_NE(where.find("for all_reduce"), std::string::npos) << where;
  }
  EXPECT_FALSE(sign.waits);
  Beacon::Wait const nowhere(nullptr, "nothing");
}

TEST(Beacon, KnowsTheUsualLengthOfAnActivityWithoutItsWaits) {
  Beacon beacon;
  EXPECT_EQ(beacon.stretches(Activity::forward).count, 0);
  beacon.enter(Activity::forward, 0);
  std::this_thread::sleep_for(20ms);
  {
    Beacon::Wait const wait(&beacon, "gradients");
    std::this_thread::sleep_for(200ms);
  }
  beacon.enter(Activity::backward, 0);
  auto const forward = beacon.stretches(Activity::forward);
  EXPECT_EQ(forward.count, 2);
  EXPECT_GE(forward.p99_ns, std::chrono::nanoseconds(20ms).count());
  EXPECT_LT(forward.p99_ns, std::chrono::nanoseconds(200ms).count());
}

TEST(Beacon, OneLongStretchInThousandIsNotTheUsualLength) {
  Beacon beacon;
  beacon.enter(Activity::forward, 0);
  for (int i = 0; i < 1000; ++i) beacon.mark();
  std::this_thread::sleep_for(30ms);
  beacon.mark();
  EXPECT_EQ(beacon.stretches(Activity::forward).count, 1001);
  EXPECT_LT(beacon.stretches(Activity::forward).p99_ns, std::chrono::nanoseconds(30ms).count());
}

TEST(Beacon, RemembersTheLastOperations) {
  Beacon beacon;
  for (int i = 0; i < 40; ++i) {
    auto const number = beacon.submitted("all_reduce", 2048, -1);
    if (i < 39) beacon.finished(number);
  }
  auto const text = beacon.last_operations();
  EXPECT_EQ(text.find("24 all_reduce"), std::string::npos) << text;
  EXPECT_EQ(text.rfind("25 all_reduce, 2.00 KiB", 0), 0U) << text;
  EXPECT_NE(text.find("40 all_reduce"), std::string::npos) << text;
  EXPECT_NE(text.find("under way"), std::string::npos) << text;
  EXPECT_EQ(beacon.sign().submitted - beacon.sign().finished, 1U);
}

TEST(Beacon, TheLeastOfTheLastStepsCounts) {
  Beacon beacon;
  beacon.end_step(1);  // the first is no measure
  for (int i = 0; i < 7; ++i) beacon.end_step(100 + i);
  EXPECT_EQ(beacon.sign().busy_ns, 0);
  beacon.end_step(300);
  EXPECT_EQ(beacon.sign().busy_ns, 100);
  for (int i = 0; i < 7; ++i) beacon.end_step(200 + i);
  EXPECT_EQ(beacon.sign().busy_ns, 200);
}

TEST(Beacon, AMarkCostsNextToNothing) {
  Beacon beacon;
  constexpr int marks = 1'000'000;
  auto const begin = monotonic_ns();
  for (int i = 0; i < marks; ++i) beacon.enter(Activity::forward, i);
  auto const each_ns = static_cast<double>(monotonic_ns() - begin) / marks;
  RecordProperty("ns_per_mark", std::to_string(each_ns));
  std::printf("%.0f ns per mark\n", each_ns);
  EXPECT_LT(each_ns, 1000);
}

}  // namespace
}  // namespace stratagem::trace
