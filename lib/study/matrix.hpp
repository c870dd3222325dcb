#pragma once

#include <string>
#include <vector>

#include "config/keys.hpp"
#include "keys/variables.hpp"
#include "study/cell.hpp"

namespace stratagem {

/// A study: a matrix of runs, from one file.
struct Study {
  std::string name;
  std::string file;  ///< its path as it was given; empty for one that comes from no file
  std::string text;  ///< the file's
  std::vector<std::string> overrides;
  std::vector<Cell> cells;
};

/// The study that a file's text (see config/study_file.hpp) and the overrides "section.key=value"
/// of all its cells describe. A cell has the settings of the study, then of its part, its variant,
/// and the other axes; what comes later counts.
///
/// `workers` are the ranks that train; servers come on top, so that a cell has the ranks it needs.
/// A cell is called PART-LABEL-LABEL..., with a label per axis: variants and texts by themselves,
/// workers w2, run.seed s1, data.input_size px224, data.global_batch b64, other numbers behind the
/// last word of their key.
///
/// Error(usage) lists every problem of file and overrides, a line each.
Study read_study(std::string const& text, std::string const& file,
                 std::vector<std::string> const& overrides, KnownNames const& names,
                 Environment const& environment);

}  // namespace stratagem
