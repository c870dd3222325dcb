#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/cell.hpp"
#include "study/cell_status.hpp"
#include "study/launcher.hpp"
#include "study/study_directory.hpp"

namespace stratagem {

/// How the cells of a study are started.
struct CellStart {
  Launcher launcher;
  std::vector<std::string> passed_on;  ///< options of `stratagem run`
  bool shows_output = false;  ///< otherwise, the output of runs goes to launches/<cell>.log
};

/// How a start ended.
struct CellRun {
  CellStatus status;
  double seconds = 0;
  int signal = 0;  ///< that came meanwhile; 0: none
};

/// Starts `stratagem run --resume` for a cell: from the beginning, or where it was stopped. The
/// result is judged by the files of the run, never by the launcher's code alone: a launcher may
/// exit with 0 when a node has lost power.
CellRun run_cell(StudyDirectory const& study, Cell cell, CellStart const& start);

/// The command that run_cell runs, for people to copy.
std::string command_line(StudyDirectory const& study, Cell const& cell, CellStart const& start);

}  // namespace stratagem
