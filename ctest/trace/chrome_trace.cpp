#include "trace/chrome_trace.hpp"

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/traces.hpp"

namespace stratagem {
namespace {

using nlohmann::json;

std::vector<json> events_of(trace::RunTraces const& traces) {
  std::ostringstream out;
  write_chrome_trace(traces, out);
  return json::parse(out.str()).at("traceEvents").get<std::vector<json>>();
}

std::vector<json> of_phase(std::vector<json> const& events, std::string const& phase) {
  std::vector<json> found;
  for (auto const& event : events)
    if (event.at("ph") == phase) found.push_back(event);
  return found;
}

void add_span(trace::RankTrace& trace, int lane, double begin, double end) {
  add_row(trace, "/spans",
          {{"name_id", 0}, {"lane", lane}, {"t_begin_ns", begin}, {"t_end_ns", end}, {"peer", -1}});
}

trace::RankTrace with_name(int rank) {
  auto trace = empty_trace(rank);
  trace.tables.at("/names").columns.at("name") = h5::Texts{"all_reduce"};
  trace.tables.at("/names").rows = 1;
  return trace;
}

TEST(ChromeTrace, TimesAreMicrosecondsOnRankZeroFromTheFirstEvent) {
  auto first = with_name(0), second = with_name(1);
  add_span(first, 0, 5'000, 7'500);
  // The clock of rank 1 is 1,000,000 ns behind at first and 1,000,100 at the end.
  add_row(second, "/clock",
          {{"monotonic_ns", 10'000}, {"offset_to_rank0_ns", -1'000'000}, {"uncertainty_ns", 5}});
  add_row(second, "/clock",
          {{"monotonic_ns", 2'010'000}, {"offset_to_rank0_ns", -1'000'100}, {"uncertainty_ns", 5}});
  add_row(second, "/clock", {{"monotonic_ns", 3'000'000}});  // a failed run's end compares nothing
  add_span(second, 1, 1'010'000, 1'020'000);
  auto const slices = of_phase(events_of({.ranks = {first, second}, .remarks = {}}), "X");
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].at("name"), "all_reduce");
  EXPECT_EQ(slices[0].at("ts"), 0.0);
  EXPECT_EQ(slices[0].at("dur"), 2.5);
  EXPECT_EQ(slices[1].at("pid"), 1);
  EXPECT_DOUBLE_EQ(slices[1].at("ts").get<double>(), 4.95);
}

TEST(ChromeTrace, SlicesThatOverlapStandInRowsOfTheirOwn) {
  auto trace = with_name(0);
  for (auto const& [begin, end] : {std::pair{0, 10}, {2, 5}, {5, 8}, {12, 20}})
    add_span(trace, 1, 1000.0 * begin, 1000.0 * end);
  auto const events = events_of({.ranks = {trace}, .remarks = {}});
  std::map<double, int> thread_at;
  for (auto const& slice : of_phase(events, "X"))
    thread_at[slice.at("ts").get<double>()] = slice.at("tid").get<int>();
  EXPECT_EQ(thread_at.at(0), thread_at.at(12));
  EXPECT_EQ(thread_at.at(2), thread_at.at(5));
  EXPECT_NE(thread_at.at(0), thread_at.at(2));
  std::vector<std::string> names;
  for (auto const& event : of_phase(events, "M"))
    if (event.at("name") == "thread_name") names.push_back(event.at("args").at("name"));
  EXPECT_EQ(names, (std::vector<std::string>{"comm", "comm 2"}));
}

TEST(ChromeTrace, StepsUpdatesAndCountersAreThere) {
  auto trace = empty_trace(2);
  add_row(trace, "/steps", {{"step", 7}, {"t_begin_ns", 1000}, {"dur_step_ns", 4000}});
  add_row(trace, "/ps", {{"worker", 1}, {"lag", 3}, {"t_ready_ns", 2000}, {"t_applied_ns", 5000}});
  add_row(trace, "/memory/breakdown", {{"t_ns", 1500}, {"activations", 64}});
  add_row(trace, "/memory", {{"t_ns", 1500}});
  add_row(trace, "/device", {{"t_ns", 500}, {"utilization", 0.5}});
  auto const events = events_of({.ranks = {trace}, .remarks = {}});
  auto const slices = of_phase(events, "X");
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].at("name"), "step 7");
  EXPECT_EQ(slices[0].at("ts"), 0.5);
  EXPECT_EQ(slices[1].at("cat"), "updates by worker 1");
  EXPECT_EQ(slices[1].at("args").at("lag"), 3);
  auto const counters = of_phase(events, "C");
  ASSERT_EQ(counters.size(), 2U) << "unknown power is left out";
  EXPECT_EQ(counters[0].at("args").at("activations"), 64);
  EXPECT_EQ(counters[1].at("args").at("utilization"), 0.5);
}

TEST(ChromeTrace, ARunWithoutRowsIsStillJson) {
  auto const events = events_of({.ranks = {empty_trace(0)}, .remarks = {}});
  EXPECT_TRUE(of_phase(events, "X").empty());
}

}  // namespace
}  // namespace stratagem
