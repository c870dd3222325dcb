#pragma once

#include <string>
#include <vector>

#include "base/console/table.hpp"
#include "study/cell_status.hpp"
#include "study/run_summary.hpp"

namespace stratagem {

/// Accuracy, time, throughput, exposed communication, peak memory, and the work of servers; one row
/// per run.
Table summary_table(std::vector<RunSummary> const& runs);
/// The same in tables that fit a terminal: results, peak memory by category, and servers if a run
/// had any.
std::string summary_text(std::vector<RunSummary> const& runs);

/// The state of a run directory, and the numbers from its traces.
struct RunResult {
  std::string directory;
  CellStatus status;
  RunSummary summary;
};
/// For programs: one row per run with every measure, and the values at the end of each epoch.
std::string summary_json(std::vector<RunResult> const& runs);

/// Where a step's time goes: mean milliseconds of each phase, one row per run and rank.
class PhaseTable {
 public:
  PhaseTable();
  void add(std::string const& name, trace::RunTraces const& traces);
  std::string render() const { return table_.render(); }

 private:
  Table table_;
};

}  // namespace stratagem
