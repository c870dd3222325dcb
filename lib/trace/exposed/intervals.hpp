#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace stratagem::trace {

/// A stretch of time: begin and end [ns].
using Interval = std::pair<std::int64_t, std::int64_t>;
using Intervals = std::vector<Interval>;

/// The same stretches in order, none empty, none meeting another.
Intervals united(Intervals intervals);
/// The time that is in both; each is united.
Intervals common(Intervals const& a, Intervals const& b);
/// Of united ones.
std::int64_t length(Intervals const& intervals);

}  // namespace stratagem::trace
