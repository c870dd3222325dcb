#pragma once

#include <string>
#include <vector>

#include "base/console/table.hpp"
#include "study/run_summary.hpp"

namespace stratagem {

/// Accuracy, time, throughput, exposed communication, peak memory, and the work of servers; one row
/// per run.
Table summary_table(std::vector<RunSummary> const& runs);
/// The same in tables that fit a terminal: results, peak memory by category, and servers if a run
/// had any.
std::string summary_text(std::vector<RunSummary> const& runs);

/// Where a step's time goes: mean milliseconds of each phase, a row per run and rank.
Table phase_table(std::vector<RunSummary> const& runs);

}  // namespace stratagem
