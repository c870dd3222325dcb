#include "trace/heartbeat_status.hpp"

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

TEST(HeartbeatStatus, ShowsWhereARankIsAndThatItGoesOn) {
  Sign sign;
  Recorder recorder({}, 0, &sign);
  EXPECT_EQ(recorder.heartbeat().where().substr(0, 9), "init: for");
  recorder.begin_step(7, 0);
  recorder.enter(Phase::backward);
  auto const marks = sign.marks.load();
  EXPECT_EQ(sign.activity, Activity::backward);
  EXPECT_EQ(sign.step, 7);
  EXPECT_EQ(recorder.heartbeat().where().substr(0, 21), "step 7, backward: for");
  recorder.enter(Phase::optimizer);
  EXPECT_GT(sign.marks, marks);
  recorder.end_step();
  EXPECT_EQ(sign.activity, Activity::between);
  recorder.enter(Activity::evaluate, 8);
  EXPECT_EQ(sign.activity, Activity::evaluate);
}

TEST(HeartbeatStatus, WaitingIsShownAsLongAsItLasts) {
  Sign sign;
  HeartbeatStatus heartbeat(&sign);
  heartbeat.enter(Activity::comm_exposed, 3);
  {
    HeartbeatStatus::Wait const wait(&heartbeat, "all_reduce");
    EXPECT_TRUE(sign.waits);
    auto const where = heartbeat.where();
    EXPECT_NE(where.find("step 3, comm_exposed: has waited"), std::string::npos) << where;
    EXPECT_NE(where.find("for all_reduce"), std::string::npos) << where;
  }
  EXPECT_FALSE(sign.waits);
  HeartbeatStatus::Wait const nowhere(nullptr, "nothing");
}

TEST(HeartbeatStatus, KnowsTheUsualLengthOfAnActivityWithoutItsWaits) {
  HeartbeatStatus heartbeat;
  EXPECT_EQ(heartbeat.stretches(Activity::forward).count, 0);
  heartbeat.enter(Activity::forward, 0);
  std::this_thread::sleep_for(20ms);
  {
    HeartbeatStatus::Wait const wait(&heartbeat, "gradients");
    std::this_thread::sleep_for(200ms);
  }
  heartbeat.enter(Activity::backward, 0);
  auto const forward = heartbeat.stretches(Activity::forward);
  EXPECT_EQ(forward.count, 2);
  EXPECT_GE(forward.p99_ns, std::chrono::nanoseconds(20ms).count());
  EXPECT_LT(forward.p99_ns, std::chrono::nanoseconds(200ms).count());
}

TEST(HeartbeatStatus, OneLongStretchInThousandIsNotTheUsualLength) {
  HeartbeatStatus heartbeat;
  heartbeat.enter(Activity::forward, 0);
  for (int i = 0; i < 1000; ++i) heartbeat.mark();
  std::this_thread::sleep_for(30ms);
  heartbeat.mark();
  EXPECT_EQ(heartbeat.stretches(Activity::forward).count, 1001);
  EXPECT_LT(heartbeat.stretches(Activity::forward).p99_ns, std::chrono::nanoseconds(30ms).count());
}

TEST(HeartbeatStatus, RemembersTheLastOperations) {
  HeartbeatStatus heartbeat;
  for (int i = 0; i < 40; ++i) {
    auto const number = heartbeat.submitted("all_reduce", 2048, -1);
    if (i < 39) heartbeat.finished(number);
  }
  auto const text = heartbeat.last_operations();
  EXPECT_EQ(text.find("24 all_reduce"), std::string::npos) << text;
  EXPECT_EQ(text.rfind("25 all_reduce, 2.00 KiB", 0), 0U) << text;
  EXPECT_NE(text.find("40 all_reduce"), std::string::npos) << text;
  EXPECT_NE(text.find("under way"), std::string::npos) << text;
  EXPECT_EQ(heartbeat.sign().submitted - heartbeat.sign().finished, 1U);
}

TEST(HeartbeatStatus, TheLeastOfTheLastStepsCounts) {
  HeartbeatStatus heartbeat;
  heartbeat.end_step(1);  // the first is no measure
  for (int i = 0; i < 7; ++i) heartbeat.end_step(100 + i);
  EXPECT_EQ(heartbeat.sign().busy_ns, 0);
  heartbeat.end_step(300);
  EXPECT_EQ(heartbeat.sign().busy_ns, 100);
  for (int i = 0; i < 7; ++i) heartbeat.end_step(200 + i);
  EXPECT_EQ(heartbeat.sign().busy_ns, 200);
}

TEST(HeartbeatStatus, AMarkCostsNextToNothing) {
  HeartbeatStatus heartbeat;
  constexpr int marks = 1'000'000;
  auto const begin = monotonic_ns();
  for (int i = 0; i < marks; ++i) heartbeat.enter(Activity::forward, i);
  auto const each_ns = static_cast<double>(monotonic_ns() - begin) / marks;
  RecordProperty("ns_per_mark", std::to_string(each_ns));
  std::printf("%.0f ns per mark\n", each_ns);
  EXPECT_LT(each_ns, 1000);
}

}  // namespace
}  // namespace stratagem::trace
