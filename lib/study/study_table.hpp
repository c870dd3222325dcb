#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/console/table.hpp"
#include "study/cell_status.hpp"
#include "study/run_summary.hpp"
#include "study/study_directory.hpp"

namespace stratagem {

/// A cell with what its traces say, where there are any.
struct CellResult {
  CellEntry entry;
  CellStatus status;
  std::optional<RunSummary> summary;
  std::string git_sha;      ///< of the program that ran it, "+" behind it where it had been changed
  bool same_config = true;  ///< it was run with the configuration that the study gave it

  bool is_complete() const { return status.state == CellState::complete && summary.has_value(); }
};

/// Median, least and greatest of the values that are known, and how many these are.
struct Spread {
  double median, least, greatest;  ///< NaN of nothing
  std::size_t count;

  static Spread of(std::vector<double> values);
  /// "12.3 [11.9, 13.0]"; "12.3" of a single value; "-" of none.
  std::string text(int digits) const;
};

/// The commits of the programs that the cells were run by; more than one cannot be compared.
std::vector<std::string> commits_of(std::vector<CellResult> const& cells);

/// A row per group of cells that differ by their seed: median [least, greatest] over those that are
/// complete, their number, and what became of the others. Groups of which no cell has begun have
/// none. Times of runs that their time limit ended are marked ">". With `mark_mixed`, groups of
/// cells that cannot be compared (see commits_of) say so.
Table study_table(std::vector<CellResult> const& cells, bool mark_mixed);
/// What its numbers are, in a line for its readers.
inline constexpr char about_study_table[] =
    "median [least, greatest] over the n complete cells of a row, which differ by their seed";

/// The same for programs: median, least, greatest and how many are known, in a column each and in
/// full, in the units of summary.csv.
Table study_numbers(std::vector<CellResult> const& cells, bool mark_mixed);

/// A row per cell that is not complete: its state, the reason, and the command that repeats it. Of
/// cells that have not begun, as many as a person would read; the others share one.
Table missing_table(std::vector<CellResult> const& cells, StudyDirectory const& study);

/// A row per cell with every number in full, for programs: the columns of cells.csv, then results.
/// What is not known is empty.
std::string summary_csv(std::vector<CellResult> const& cells);

/// "groups", as study_numbers has them, and "cells", as summary_csv has them.
std::string study_json(std::vector<CellResult> const& cells);

}  // namespace stratagem
