#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "trace/exposed/exposed_time.hpp"
#include "trace/exposed/sampled_steps.hpp"

namespace stratagem::trace {
namespace {

using Steps = std::map<std::int64_t, SampledStep>;

bool is_collective(CommSpan const& span) {
  constexpr std::array<std::string_view, 5> names{"all_reduce", "reduce_scatter", "all_gather",
                                                  "broadcast", "barrier"};
  return std::ranges::find(names, span.name) != names.end();
}

bool are_alike(std::vector<SampledStep const*> const& ranks) {
  auto const& first = ranks.front()->communication;
  return std::ranges::all_of(ranks, [&](SampledStep const* rank) {
    return std::ranges::equal(rank->communication, first, {}, &CommSpan::name, &CommSpan::name);
  });
}

/// By operation: when the last rank began it.
std::vector<std::int64_t> begun_by_all(std::vector<SampledStep const*> const& ranks) {
  std::vector<std::int64_t> begun;
  for (auto const* rank : ranks) {
    begun.resize(rank->communication.size());
    for (std::size_t i = 0; i < begun.size(); ++i)
      begun[i] = std::max(begun[i], rank->communication[i].time.first);
  }
  return begun;
}

/// While the operation that ends next waits for another rank.
Intervals waiting_of(SampledStep const& rank, std::vector<std::int64_t> const& begun_by_all) {
  std::map<std::int64_t, Interval> by_end;
  for (std::size_t i = 0; i < begun_by_all.size(); ++i) {
    auto const [begin, end] = rank.communication[i].time;
    by_end[end] = {begin, std::min(begun_by_all[i], end)};
  }
  Intervals waiting;
  std::int64_t before = 0;
  for (auto const& [end, time] : by_end) {
    waiting.emplace_back(std::max(time.first, before), time.second);
    before = end;
  }
  return united(std::move(waiting));
}

/// The steps that all ranks have, with their collectives alone.
std::vector<std::vector<SampledStep const*>> common_steps(std::vector<Steps>& ranks) {
  std::vector<std::vector<SampledStep const*>> found;
  for (auto const& [number, _] : ranks.front()) {
    std::vector<SampledStep const*> step;
    for (auto& rank : ranks) {
      auto const own = rank.find(number);
      if (own == rank.end()) break;
      std::erase_if(own->second.communication, std::not_fn(is_collective));
      step.push_back(&own->second);
    }
    if (step.size() == ranks.size() && are_alike(step)) found.push_back(std::move(step));
  }
  return found;
}

}  // namespace

ExposedTime exposed_to_collectives(std::vector<RankTrace const*> const& ranks) {
  ExposedTime sum;
  std::vector<Steps> steps;
  for (auto const* rank : ranks) steps.push_back(sampled_steps(*rank));
  if (steps.empty()) return sum;
  for (auto const& step : common_steps(steps)) {
    auto const begun = begun_by_all(step);
    for (auto const* rank : step) {
      auto exposed = rank->before;
      exposed.insert(exposed.end(), rank->after.begin(), rank->after.end());
      exposed = united(std::move(exposed));
      auto const waiting = length(common(exposed, waiting_of(*rank, begun)));
      sum.waiting += waiting;
      sum.transfer += length(exposed) - waiting;
    }
  }
  return sum;
}

}  // namespace stratagem::trace
