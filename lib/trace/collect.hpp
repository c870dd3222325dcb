#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trace/rank_trace.hpp"

namespace stratagem::trace {

/// The traces of one run, attempts joined: one entry per rank, in rank order.
struct RunTraces {
  std::vector<RankTrace> ranks;
  std::vector<std::string> remarks;  ///< files that were skipped or end early, a line each
};

/// Reads `run`/trace/a*/rank-*.h5. Of a step that several attempts made, the last one counts. A
/// missing, torn or foreign file is remarked on and left out. Error(bad_data) when none is usable.
RunTraces collect_run(std::filesystem::path const& run);

/// One compressed file of all ranks, replacing `path` when it exists. Inputs are never touched.
/// Error(io) when it cannot be written; then nothing is left of it.
void write_collected(RunTraces const& traces, std::filesystem::path const& path);

}  // namespace stratagem::trace
