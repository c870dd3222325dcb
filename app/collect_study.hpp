#pragma once

#include <filesystem>
#include <string>

#include "base/exit_code.hpp"
#include "base/log.hpp"

namespace stratagem::app {

/// `stratagem collect` of a study directory: a collected.h5 in each cell that has traces,
/// summary.csv, and a table on stdout. Error(usage) when cells were run by different programs or
/// with other configurations, unless `allow_mixed`; when no cell is complete, after the table.
ExitCode collect_study(std::filesystem::path const& directory, std::string const& format,
                       bool allow_mixed, Log& log);

}  // namespace stratagem::app
