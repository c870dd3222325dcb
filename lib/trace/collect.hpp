#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trace/rank_trace.hpp"

namespace stratagem::trace {

/// The traces of one run, with attempts and versions in /ps joined: one entry per rank, in rank
/// order.
struct RunTraces {
  std::vector<RankTrace> ranks;      ///< that have a usable trace
  std::int64_t world = 0;            ///< all ranks of the run; 0: not known
  std::vector<std::string> remarks;  ///< files that were skipped or end early, a line each
};

/// Reads `run`/trace/a*/rank-*.h5. If several attempts made the same step, the last one counts. A
/// file that is missing, damaged or from another run is left out, with a remark. Error(bad_data) if
/// none is usable.
RunTraces collect_run(std::filesystem::path const& run);

/// Error(usage) where write_collected() would replace a file that is no collected one, or one of
/// another run.
void require_replaceable(RunTraces const& traces, std::filesystem::path const& path);

/// Writes the traces of all ranks to one compressed file; replaces `path` if it exists. The inputs
/// are never changed. Error(io) if it cannot be written; then nothing is left behind.
void write_collected(RunTraces const& traces, std::filesystem::path const& path);

}  // namespace stratagem::trace
