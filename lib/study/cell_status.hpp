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
#include "study/study_directory.hpp"

namespace stratagem {

enum class CellState { missing, running, lost, saved, failed, complete };
inline constexpr std::array<std::string_view, 6> cell_state_names{"missing", "running", "lost",
                                                                  "saved",   "failed",  "complete"};
inline std::string_view name_of(CellState state) {
  return cell_state_names.at(static_cast<std::size_t>(state));
}

/// How a launcher ended that was started for a cell: the content of launches/<cell>.json.
struct LaunchRecord {
  int exit_code = 0;
  std::int64_t started_wall_ns = 0;
  double seconds = 0;
  std::string host;
  std::string job;        ///< of Slurm; empty outside of one
  std::string last_line;  ///< its error, or what its output ended with
};

void write_launch_record(std::filesystem::path const& file, LaunchRecord const& record);
/// Nothing when there is none, or none that can be read.
std::optional<LaunchRecord> read_launch_record(std::filesystem::path const& file);

/// How a cell stands, by its files alone.
struct CellStatus {
  CellState state = CellState::missing;
  std::string reason;
  ExitCode code = ExitCode::done;
  std::optional<Outcome> outcome;
  std::optional<LaunchRecord> launch;  ///< the last
};

/// A run that is said to be running and gave no sign of life for a minute, or whose process on this
/// host is gone, is lost: its node or its job ended without a word.
CellStatus status_of(StudyDirectory const& study, std::string const& cell);

/// Of a run that belongs to no study: by its run directory alone.
CellStatus status_of_run(std::filesystem::path const& run);

/// The same once the cell's launcher has ended: nothing runs any more. A run that somebody ended,
/// and that does not know why, has lost others where the launcher's code is that of no error: 0, as
/// when a node lost its power, or the system's.
CellStatus once_ended(CellStatus status, int launcher_code);

/// The states of all cells, counted: "84 cells: 80 complete, 3 failed, 1 missing".
std::string count_states(std::vector<CellStatus> const& cells);

/// A row per cell, in the order of the study: index, cell, ranks, state, seconds, reason. `all`:
/// complete cells too.
Table status_table(StudyDirectory const& study, std::vector<CellStatus> const& cells, bool all);

}  // namespace stratagem
