#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/console/table.hpp"
#include "run_files/outcome.hpp"
#include "study/cell.hpp"
#include "study/study_directory.hpp"

namespace stratagem {

enum class CellState { missing, running, lost, saved, failed, complete };
inline constexpr std::array<std::string_view, 6> cell_state_names{"missing", "running", "lost",
                                                                  "saved",   "failed",  "complete"};
inline std::string_view name_of(CellState state) {
  return cell_state_names.at(static_cast<std::size_t>(state));
}

/// How a launcher that was started for a cell ended: the content of launches/<cell>.json.
struct LaunchRecord {
  int exit_code = 0;
  bool began = false;  ///< there was a run when it ended
  std::int64_t started_wall_ns = 0;
  double seconds = 0;
  std::string host;
  std::string job;        ///< Slurm's; empty outside of a job
  std::string last_line;  ///< its error, or the last line of its output
};

void write_launch_record(std::filesystem::path const& file, LaunchRecord const& record);
/// Empty if there is none, or it cannot be read.
std::optional<LaunchRecord> read_launch_record(std::filesystem::path const& file);

/// The state of a cell, from its files only.
struct CellStatus {
  CellState state = CellState::missing;
  std::string reason;
  ExitCode code = ExitCode::done;
  std::optional<Outcome> outcome;
  std::optional<LaunchRecord> launch;  ///< the last one
};

/// Without a sign of life for a minute, or its process gone from this host, a run is lost. A start
/// that failed before the run could say so is failed, whatever an earlier attempt left: also saved.
CellStatus status_of(StudyDirectory const& study, std::string const& cell);

/// The same of any run directory; of one that belongs to no study, by its outcome.json alone.
CellStatus status_of_run(std::filesystem::path const& run);

/// Whether there is nothing left to do for a cell. Error(usage) where what was done is not what the
/// study asks for now, as with variables of the environment that changed: settings that decide what
/// a run computes are compared with those of its config.yaml.
bool is_complete(StudyDirectory const& study, Cell const& cell);

/// The status of a cell after its launcher has ended, so nothing is running any more. If the run
/// was ended and does not know why, it has lost a peer, unless the launcher's exit code is that of
/// an error. Code 0 (a node lost power) and codes of signals are not errors.
CellStatus once_ended(CellStatus status, int launcher_code);

/// Counts of the states of all cells: "84 cells: 80 complete, 3 failed, 1 missing".
std::string count_states(std::vector<CellStatus> const& cells);

/// One row per cell, in the order of the study: index, cell, ranks, state, seconds, reason. `all`:
/// also complete cells.
Table status_table(StudyDirectory const& study, std::vector<CellStatus> const& cells, bool all);

}  // namespace stratagem
