#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/console/log.hpp"
#include "base/console/progress_display.hpp"
#include "study/run_cell.hpp"

namespace stratagem {

/// How long cells will take, by those that were run: repetitions of the same cell if there are any,
/// else cells of the same part and model, else all.
class TimeEstimate {
 public:
  void add(CellEntry const& cell, double seconds);
  /// [s]; NaN when nothing is known.
  double of(CellEntry const& cell) const;

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
  };

  std::map<std::string, Mean> means_;  ///< by group, by part and model, and of all
};

/// Runs one cell, unless it is complete. The exit code is the run's; Error(usage) while another
/// process runs the cell.
ExitCode sweep_one(StudyDirectory const& study, Cell const& cell, CellStart const& start, Log& log);

/// Runs `cells` one after the other, but for those that are complete; a failing one does not stop
/// the others, a signal does. Tells of each how it ended, and how long the rest will take. Code
/// cells_missing when a cell is not complete in the end, 75 when USR1 or INT ended it, 1 when TERM
/// did. Error(usage) while another process sweeps all of the study.
ExitCode sweep_all(StudyDirectory const& study, std::vector<Cell> const& cells,
                   CellStart const& start, ProgressStyle style, Log& log);

}  // namespace stratagem
