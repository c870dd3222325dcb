#pragma once

#include <string>
#include <vector>

#include "trace/rank_trace.hpp"

namespace stratagem::trace {

/// The violations of the schema's invariants in `trace`, one line each; empty if there are none.
std::vector<std::string> problems_of(RankTrace const& trace);

}  // namespace stratagem::trace
