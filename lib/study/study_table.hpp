#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/console/table.hpp"
#include "study/cell_status.hpp"
#include "study/run_summary.hpp"
#include "study/study_directory.hpp"

namespace stratagem {

/// A cell, with the numbers from its traces if there are any.
struct CellResult {
  CellEntry entry;
  CellStatus status;
  std::optional<RunSummary> summary;
  std::string directory{};  ///< of the run
  std::string git_sha{};    ///< of the program that ran it, "+" behind it where it had been changed
  bool same_config = true;  ///< it was run with the configuration that the study gave it
  std::map<std::string, std::string> files{};  ///< see RunFacts

  bool is_complete() const { return status.state == CellState::complete && summary.has_value(); }
};

/// Median, minimum and maximum of the known values, and their number.
struct Spread {
  double median, least, greatest;  ///< NaN if there are none
  std::size_t count;

  static Spread of(std::vector<double> values);
  /// "12.3 [11.9, 13.0]"; "12.3" for a single value; "-" for none.
  std::string text(int digits) const;
};

/// The commits of the programs that ran the cells. Runs of different commits are not comparable.
std::vector<std::string> commits_of(std::vector<CellResult> const& cells);

/// One row per group of cells that differ only in their seed: median [minimum, maximum] over the
/// complete cells, their number, and the state of the others. Groups without a started cell are
/// left out. Times of runs that reached their time limit are marked ">". With `mark_mixed`, groups
/// whose cells are not comparable (see commits_of) are marked.
Table study_table(std::vector<CellResult> const& cells, bool mark_mixed);
/// A line for readers that explains the numbers.
inline constexpr char about_study_table[] =
    "median [least, greatest] over the n complete cells of a row, which differ by their seed";

/// The same for programs: median, minimum, maximum and number of known values, each in its own
/// column, with full precision, in the units of summary.csv.
Table study_numbers(std::vector<CellResult> const& cells, bool mark_mixed);

/// One row per incomplete cell: its state, the reason, and the command that repeats it. Of the
/// cells that have not begun, only the first ones have a row of their own; the others share one.
Table missing_table(std::vector<CellResult> const& cells, StudyDirectory const& study);

/// One row per cell with all numbers at full precision, for programs: the columns of cells.csv,
/// then results. Unknown values are empty.
std::string summary_csv(std::vector<CellResult> const& cells);

/// For programs: "groups", with median, least, greatest and number of every measure over the
/// complete cells, and "cells", as summary_csv has them and with lists (see add_lists).
std::string study_json(std::vector<CellResult> const& cells);

}  // namespace stratagem
