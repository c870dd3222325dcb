#include "trace/exposed/sampled_steps.hpp"

#include <algorithm>

#include "trace/clock_map.hpp"
#include "trace/phase.hpp"

namespace stratagem::trace {
namespace {

std::string name_of(Phase phase) {
  return std::string(phase_names[static_cast<std::size_t>(phase)]);
}

}  // namespace

std::map<std::int64_t, SampledStep> sampled_steps(RankTrace const& rank) {
  auto const& spans = rank.table(spans_table());
  auto const& names = rank.table(names_table()).texts("name");
  auto const &lanes = spans.integers("lane"), &ids = spans.integers("name_id");
  auto const& numbers = spans.integers("step");
  auto const &begins = spans.integers("t_begin_ns"), &ends = spans.integers("t_end_ns");
  ClockMap const clock(rank.table(clock_table()));
  std::map<std::int64_t, SampledStep> steps;
  std::map<std::int64_t, Intervals> exposed;
  std::map<std::int64_t, std::int64_t> passed;  // by step: end of its last backward pass
  for (std::size_t i = 0; i < static_cast<std::size_t>(spans.rows); ++i) {
    auto const name = static_cast<std::size_t>(ids[i]);
    if (ids[i] < 0 || name >= names.size()) continue;
    Interval const time{clock(begins[i]), clock(ends[i])};
    if (lanes[i] == static_cast<std::int64_t>(Lane::comm))
      steps[numbers[i]].communication.push_back({names[name], time});
    if (lanes[i] != static_cast<std::int64_t>(Lane::compute)) continue;
    auto& last = passed.try_emplace(numbers[i], time.first).first->second;
    if (names[name] == name_of(Phase::backward)) last = std::max(last, time.second);
    if (names[name] == name_of(Phase::comm_exposed)) exposed[numbers[i]].push_back(time);
  }
  for (auto const& [number, last] : passed) {
    auto& step = steps[number];
    for (auto const& time : exposed[number])
      (time.first < last ? step.before : step.after).push_back(time);
    step.before = united(std::move(step.before));
    step.after = united(std::move(step.after));
    std::ranges::stable_sort(step.communication, {},
                             [](CommSpan const& span) { return span.time.first; });
  }
  std::erase_if(steps, [&](auto const& step) { return !passed.contains(step.first); });
  return steps;
}

}  // namespace stratagem::trace
