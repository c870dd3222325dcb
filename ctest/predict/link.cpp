#include "predict/link.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace stratagem {
namespace {

TEST(Link, IsReadInBitsPerSecond) {
  EXPECT_DOUBLE_EQ(parse_link("1gbit").bandwidth, 125e6);
  EXPECT_DOUBLE_EQ(parse_link("2.5mbit").bandwidth, 312500);
  EXPECT_DOUBLE_EQ(parse_link("800kbit").bandwidth, 1e5);
  EXPECT_DOUBLE_EQ(parse_link("1gbit").latency_s, 0);
  EXPECT_DOUBLE_EQ(parse_link("1gbit,50us").latency_s, 50e-6);
  EXPECT_DOUBLE_EQ(parse_link("1gbit,20ms").latency_s, 0.02);
  EXPECT_DOUBLE_EQ(parse_link("1gbit,2s").latency_s, 2);
}

TEST(Link, RefusesWhatIsNone) {
  for (auto const* text : {"", "1", "gbit", "0gbit", "-1gbit", "nangbit", "infgbit", "1gbit,",
                           "1gbit,5", "1gbit,-5us", "1GB/s", "1gbit,5us,6us", "1 gbit x"}) {
    try {
      parse_link(text);
      ADD_FAILURE() << text;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::usage) << text;
    }
  }
}

TEST(Link, BandwidthsAreShownInBits) {
  EXPECT_EQ(bandwidth_text(125e6), "1.0 Gbit/s");
  EXPECT_EQ(bandwidth_text(1.25e10), "100 Gbit/s");
  EXPECT_EQ(bandwidth_text(1.25e7), "100 Mbit/s");
  EXPECT_EQ(bandwidth_text(1e5), "0.8 Mbit/s");
}

TEST(Link, CarriesWhatEachOperationMovesOverIt) {
  StepCosts const measured{.forward_s = 3, .all_reduce = Curve({{4e6, 1}}), .threads = 2};
  auto const costs = over_link(measured, {.bandwidth = 1e6, .latency_s = 0.5}, 4);
  EXPECT_DOUBLE_EQ(costs.all_reduce.at(4e6).seconds, 2 * 0.5 + 2 * 3.0 / 4 * 4);
  EXPECT_DOUBLE_EQ(costs.reduce_scatter.at(4e6).seconds, 0.5 + 3.0 / 4 * 4);
  EXPECT_DOUBLE_EQ(costs.all_gather.at(4e6).seconds, 0.5 + 3.0 / 4 * 4);
  EXPECT_DOUBLE_EQ(costs.message.at(4e6).seconds, 4.5);
  EXPECT_DOUBLE_EQ(costs.exchange.at(0).seconds, 0.5);
  EXPECT_EQ(costs.all_reduce.at(4e6).core_s, 0) << "on GPUs";
  EXPECT_EQ(costs.forward_s, 3);
}

TEST(Link, LeavesTheCoresOfCpusAsBusyAsTheyWere) {
  StepCosts const measured{.exchange = Curve({{1e6, 1}}), .cores = 2};
  auto const slow = over_link(measured, {.bandwidth = 1e5}, 2).exchange.at(2e6);
  EXPECT_DOUBLE_EQ(slow.seconds, 20);
  EXPECT_DOUBLE_EQ(slow.core_s, 2);
  auto const fast = over_link(measured, {.bandwidth = 1e9}, 2).exchange.at(2e6);
  EXPECT_DOUBLE_EQ(fast.seconds, 2) << "no less than they need";
  EXPECT_DOUBLE_EQ(fast.core_s, 2);
}

}  // namespace
}  // namespace stratagem
