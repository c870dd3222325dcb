#include "strategy/local/fragments.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/contract.hpp"

namespace stratagem {
namespace {

/// Where blocks end that have parameters.
std::vector<std::int64_t> ends_of_blocks(ParameterLayout const& layout) {
  std::vector<std::int64_t> ends;
  for (int block = 0; block < layout.blocks(); ++block)
    if (layout.range(block).size() > 0) ends.push_back(layout.range(block).end);
  return ends;
}

/// Each ends with the block whose end is nearest to its share of all elements, and leaves a block
/// for each of those after it.
std::vector<FlatRange> cut(std::vector<std::int64_t> const& ends, int count) {
  std::vector<FlatRange> ranges;
  std::size_t next = 0;
  for (int fragment = 0; fragment < count; ++fragment) {
    auto const begin = ranges.empty() ? 0 : ranges.back().end;
    auto const share = ends.back() * (fragment + 1) / count;
    auto const last = ends.size() - static_cast<std::size_t>(count - fragment - 1);
    auto end = ends[next++];
    while (next < last && std::abs(ends[next] - share) <= std::abs(end - share)) end = ends[next++];
    ranges.push_back({begin, end});
  }
  return ranges;
}

}  // namespace

Fragments::Fragments(ParameterLayout const& layout, int count, int inner_steps, int delay)
    : inner_steps_(inner_steps), delay_(delay) {
  expects(count <= most(layout) && count <= inner_steps && delay < inner_steps / count,
          "fragments that are not empty, one under way at a time");
  ranges_ = cut(ends_of_blocks(layout), count);
}

int Fragments::most(ParameterLayout const& layout) {
  return static_cast<int>(ends_of_blocks(layout).size());
}

std::int64_t Fragments::largest() const {
  std::int64_t largest = 0;
  for (auto const& range : ranges_) largest = std::max(largest, range.size());
  return largest;
}

int Fragments::largest_gap() const {
  std::int64_t largest = 0, before = 0;
  for (int fragment = 0; fragment < count(); ++fragment) {
    largest = std::max(largest, first_sending(fragment) - before);
    before = first_sending(fragment);
  }
  return static_cast<int>(largest);
}

std::optional<FlatRange> Fragments::sent_after(std::int64_t made) const {
  for (int fragment = 0; fragment < count(); ++fragment)
    if (made > 0 && (made - first_sending(fragment)) % inner_steps_ == 0)
      return ranges_[static_cast<std::size_t>(fragment)];
  return {};
}

std::optional<FlatRange> Fragments::taken_after(std::int64_t made) const {
  return sent_after(made - delay_);
}

std::optional<FlatRange> Fragments::under_way_after(std::int64_t made) const {
  for (int ago = 0; ago < delay_; ++ago)
    if (auto const range = sent_after(made - ago)) return range;
  return {};
}

}  // namespace stratagem
