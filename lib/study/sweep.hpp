#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/console/log.hpp"
#include "base/console/progress_display.hpp"
#include "study/run_cell.hpp"

namespace stratagem {

/// How long cells will take, estimated from finished ones: repetitions of the same cell if there
/// are any, else cells of the same part and model, else all.
class TimeEstimate {
 public:
  void add(CellEntry const& cell, double seconds);
  /// [s]; NaN if nothing is known.
  double of(CellEntry const& cell) const;

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
  };

  std::map<std::string, Mean> means_;  ///< by group, by part and model, and for all
};

/// Runs one cell, unless it is complete. Returns the run's exit code. Error(usage) if another
/// process runs the cell.
ExitCode sweep_one(StudyDirectory const& study, Cell const& cell, CellStart const& start, Log& log);

/// Runs the `cells` that are not complete, one after the other. A failing cell does not stop the
/// others; a signal does. Reports how each cell ended, and how long the rest will take. Returns
/// cells_missing if a cell is not complete at the end, 75 if USR1 or INT ended the sweep, 1 if TERM
/// did. Error(usage) if another process sweeps the whole study.
ExitCode sweep_all(StudyDirectory const& study, std::vector<Cell> const& cells,
                   CellStart const& start, ProgressStyle style, Log& log);

}  // namespace stratagem
