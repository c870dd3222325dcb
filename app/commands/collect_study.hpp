#pragma once

#include <filesystem>
#include <string>

#include "base/console/log.hpp"
#include "base/exit_code.hpp"

namespace stratagem::app {

struct StudyTableRequest {
  std::string format;            ///< text, md, csv, latex or json
  std::filesystem::path output;  ///< of the table; empty: stdout
  bool allow_mixed = false;
  bool writes = true;  ///< collected.h5, summary.csv and measures.json
};

/// `stratagem collect` of a study directory: a collected.h5 in each cell that has traces,
/// summary.csv, measures.json, and a table. What cannot be written is warned of, but for the table.
/// Error(usage) when cells were run by different programs or with other configurations, unless that
/// is allowed; Error(cells_missing), after the table, when no cell is complete.
ExitCode collect_study(std::filesystem::path const& directory, StudyTableRequest const& request,
                       Log& log);

}  // namespace stratagem::app
