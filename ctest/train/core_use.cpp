#include "train/core_use.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "comm/serial/serial_communicator.hpp"

namespace stratagem {
namespace {

TEST(CoreUse, WhatTheRanksTakeFromOneAnotherDisturbsNobody) {
  // Two cores, 10 s: three ranks keep both busy, or two leave some of them idle.
  EXPECT_EQ(least_undisturbed({{"a 0 1", 20, 20, 8}, {"a 0 1", 20, 20, 7}, {"a 0 1", 20, 20, 5}}),
            1);
  EXPECT_EQ(least_undisturbed({{"a 0 1", 20, 13, 8}, {"a 0 1", 20, 13, 5}}), 1);
  EXPECT_EQ(least_undisturbed({{"a 0", 10, 9.9, 10}}), 1) << "clocks tick apart";
}

TEST(CoreUse, OthersDisturbThoseWhoseCoresTheyUse) {
  EXPECT_DOUBLE_EQ(least_undisturbed({{"a 0 1", 20, 18, 8}, {"a 0 1", 20, 18, 6}}), 0.8);
  EXPECT_DOUBLE_EQ(least_undisturbed({{"a 0", 10, 8, 8}, {"a 1", 10, 9, 4}}), 0.5);
  EXPECT_DOUBLE_EQ(least_undisturbed({{"a 0", 10, 8, 8}, {"b 0", 10, 8, 7}}), 0.9);
  EXPECT_TRUE(std::isnan(least_undisturbed({{"a 0", 10, 8, 8}, {"b 0", 10, std::nan(""), 8}})));
}

TEST(CoreUse, IsKnownOfThisProcess) {
  ProcessInfo const process{.host = host_name(), .cores = usable_cores()};
  CoreUse const use(process);
  for (auto const end = monotonic_ns() + 50'000'000; monotonic_ns() < end;) {
  }
  SerialCommunicator alone(process.device);
  auto const share = use.share(alone);
  EXPECT_GE(share, 0);
  EXPECT_LE(share, 1);
}

}  // namespace
}  // namespace stratagem
