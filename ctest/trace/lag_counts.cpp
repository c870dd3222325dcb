#include "trace/lag_counts.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "comm/serial/serial_communicator.hpp"
#include "strategy/ps/round_counts.hpp"

namespace stratagem {
namespace {

LagCounts of(std::vector<std::int64_t> const& lags) {
  LagCounts counts;
  for (auto const lag : lags) counts.add(lag);
  return counts;
}

TEST(PsLagCounts, QuantilesAreLagsThatWere) {
  auto const lags = of({0, 0, 1, 1, 1, 1, 2, 2, 3, 9});
  EXPECT_EQ(lags.total(), 10);
  EXPECT_DOUBLE_EQ(lags.mean(), 2);
  EXPECT_EQ(lags.quantile(0.2), 0);
  EXPECT_EQ(lags.quantile(0.5), 1);
  EXPECT_EQ(lags.quantile(0.9), 3);
  EXPECT_EQ(lags.quantile(0.95), 9);
  EXPECT_EQ(lags.most(), 9);
  EXPECT_EQ(describe(lags), "lag mean 2.00, p50 1, p95 9, p99 9, max 9");
}

TEST(PsLagCounts, OfNothingAreUnknown) {
  EXPECT_TRUE(std::isnan(LagCounts().mean()));
  EXPECT_TRUE(std::isnan(LagCounts().most()));
}

TEST(PsLagCounts, ARoundIsToldOfWithWhatItsPolicyHas) {
  SerialCommunicator alone({});
  RoundCounts const counts{
      .lags = of({1, 1, 5000}), .dropped = 1, .overflowed = 1, .busy_ns = 30, .whole_ns = 120};
  auto const joined = counts.joined(alone);
  EXPECT_EQ(joined.lags.most(), 1023) << "and more";
  EXPECT_EQ(describe(joined, {}),
            "lag mean 341.67, p50 1, p95 1023, p99 1023, max 1023; dropped 1 of 3 (overflowed 1); "
            "servers 25 % busy");
  EXPECT_EQ(
      describe({.lags = of({0}), .busy_ns = 1, .whole_ns = 2}, {.gate = ServerPolicy::Gate::bsp}),
      "servers 50 % busy");
}

}  // namespace
}  // namespace stratagem
