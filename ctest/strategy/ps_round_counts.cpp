#include <gtest/gtest.h>

#include "comm/serial/serial_communicator.hpp"
#include "strategy/ps/round_counts.hpp"

namespace stratagem {
namespace {

TEST(PsRoundCounts, AreToldOfWithWhatItsPolicyHas) {
  SerialCommunicator alone({});
  LagCounts const none_late(std::vector<std::int64_t>{1});
  LagCounts many;
  for (auto const lag : {1, 1, 5000}) many.add(lag);
  RoundCounts const counts{
      .lags = many, .dropped = 1, .overflowed = 1, .busy_ns = 30, .whole_ns = 120};
  auto const joined = counts.joined(alone);
  EXPECT_EQ(joined.lags.most(), 1023) << "and more";
  EXPECT_EQ(describe(joined, {}),
            "lag mean 341.67, p50 1, p95 1023, p99 1023, max 1023; dropped 1 of 3 with 33.3 % of "
            "the samples, overflowed 1; servers 25 % busy");
  EXPECT_EQ(
      describe({.lags = none_late, .busy_ns = 1, .whole_ns = 2}, {.gate = ServerPolicy::Gate::bsp}),
      "servers 50 % busy");
}

}  // namespace
}  // namespace stratagem
