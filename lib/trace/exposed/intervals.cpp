#include "trace/exposed/intervals.hpp"

#include <algorithm>

namespace stratagem::trace {

Intervals united(Intervals intervals) {
  std::ranges::sort(intervals);
  Intervals result;
  for (auto const& [begin, end] : intervals) {
    if (begin >= end) continue;
    if (result.empty() || result.back().second < begin)
      result.emplace_back(begin, end);
    else
      result.back().second = std::max(result.back().second, end);
  }
  return result;
}

Intervals common(Intervals const& a, Intervals const& b) {
  Intervals result;
  for (auto one = a.begin(), other = b.begin(); one != a.end() && other != b.end();) {
    auto const begin = std::max(one->first, other->first);
    auto const end = std::min(one->second, other->second);
    if (begin < end) result.emplace_back(begin, end);
    ++(one->second < other->second ? one : other);
  }
  return result;
}

std::int64_t length(Intervals const& intervals) {
  std::int64_t sum = 0;
  for (auto const& [begin, end] : intervals) sum += end - begin;
  return sum;
}

}  // namespace stratagem::trace
