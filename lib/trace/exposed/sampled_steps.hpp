#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/exposed/intervals.hpp"
#include "trace/rank_trace.hpp"

namespace stratagem::trace {

/// Something that the communicator did.
struct CommSpan {
  std::string name;
  Interval time;
};

/// What a rank recorded of a step whose spans were kept, on rank 0's clock.
struct SampledStep {
  Intervals before;                     ///< exposed communication up to the last backward pass
  Intervals after;                      ///< exposed communication behind it
  std::vector<CommSpan> communication;  ///< by their begin
};

/// By step.
std::map<std::int64_t, SampledStep> sampled_steps(RankTrace const& rank);

}  // namespace stratagem::trace
