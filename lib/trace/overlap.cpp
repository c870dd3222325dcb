#include "trace/overlap.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "trace/exposed/intervals.hpp"
#include "trace/phase.hpp"
#include "trace/records.hpp"

namespace stratagem {
namespace {

using trace::Interval;
using trace::Intervals;

struct StepSpans {
  Intervals compute, comm;
  std::int64_t waited_ns = 0;
};

/// By step, on the rank's own clock.
std::map<std::int64_t, StepSpans> steps_of(trace::RankTrace const& rank) {
  auto const& spans = rank.table(trace::spans_table());
  auto const& names = rank.table(trace::names_table()).texts("name");
  auto const& lanes = spans.integers("lane");
  auto const &numbers = spans.integers("step"), &ids = spans.integers("name_id");
  auto const &begins = spans.integers("t_begin_ns"), &ends = spans.integers("t_end_ns");
  auto const waits = [&](std::int64_t id) {
    auto const waiting = trace::phase_names[static_cast<std::size_t>(trace::Phase::comm_exposed)];
    return id >= 0 && id < static_cast<std::int64_t>(names.size()) &&
           names[static_cast<std::size_t>(id)] == waiting;
  };
  std::map<std::int64_t, StepSpans> steps;
  for (std::size_t i = 0; i < static_cast<std::size_t>(spans.rows); ++i) {
    auto& step = steps[numbers[i]];
    Interval const span{begins[i], ends[i]};
    if (lanes[i] == static_cast<std::int64_t>(trace::Lane::comm)) step.comm.push_back(span);
    if (lanes[i] != static_cast<std::int64_t>(trace::Lane::compute)) continue;
    step.compute.push_back(span);
    if (waits(ids[i])) step.waited_ns += span.second - span.first;
  }
  return steps;
}

}  // namespace

double overlap_share(std::vector<trace::RankTrace const*> const& ranks) {
  std::int64_t under_way = 0, waited = 0;
  for (auto const* rank : ranks) {
    for (auto const& [number, step] : steps_of(*rank)) {
      if (step.compute.empty()) continue;
      auto const begin = std::ranges::min(step.compute, {}, &Interval::first).first;
      auto const end = std::ranges::max(step.compute, {}, &Interval::second).second;
      under_way += trace::length(trace::common(trace::united(step.comm), {{begin, end}}));
      waited += step.waited_ns;
    }
  }
  if (under_way == 0) return trace::unknown;
  return std::max(0.0, 1 - static_cast<double>(waited) / static_cast<double>(under_way));
}

}  // namespace stratagem
