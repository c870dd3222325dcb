#pragma once

#include <string>
#include <vector>

#include "trace/rank_trace.hpp"

namespace stratagem::trace {

/// What in `trace` breaks the schema's invariants, a line each; empty when nothing does.
std::vector<std::string> problems_of(RankTrace const& trace);

}  // namespace stratagem::trace
