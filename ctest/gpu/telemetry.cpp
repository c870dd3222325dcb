#include "gpu/telemetry.hpp"

#include <chrono>
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.hpp"

namespace stratagem::gpu {
namespace {

using namespace std::chrono_literals;

TEST(Telemetry, OfTheProcessorTellsBusyFromIdle) {
  auto const telemetry = make_telemetry(Device{});
  std::this_thread::sleep_for(100ms);
  auto const idle = telemetry->sample();
  for (auto const end = monotonic_ns() + 100'000'000; monotonic_ns() < end;) {
  }
  auto const busy = telemetry->sample();
  EXPECT_LT(idle.utilization, busy.utilization);
  EXPECT_LE(busy.utilization, 1.5);
  EXPECT_GT(busy.memory_used, 1e6);
}

TEST(Telemetry, WhatTheProcessorCannotTellIsUnknown) {
  auto const sample = make_telemetry(Device{})->sample();
  EXPECT_TRUE(std::isnan(sample.power));
  EXPECT_TRUE(std::isnan(sample.energy));
  EXPECT_TRUE(std::isnan(sample.clock));
}

}  // namespace
}  // namespace stratagem::gpu
