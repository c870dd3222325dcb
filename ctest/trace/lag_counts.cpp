#include "trace/lag_counts.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

LagCounts of(std::vector<std::int64_t> const& lags) {
  LagCounts counts;
  for (auto const lag : lags) counts.add(lag);
  return counts;
}

TEST(LagCounts, QuantilesAreLagsThatWere) {
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

TEST(LagCounts, OfNothingAreUnknown) {
  EXPECT_TRUE(std::isnan(LagCounts().mean()));
  EXPECT_TRUE(std::isnan(LagCounts().most()));
}

}  // namespace
}  // namespace stratagem
