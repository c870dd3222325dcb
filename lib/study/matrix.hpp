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
  std::string file;  ///< its path as given; empty if it does not come from a file
  std::string text;  ///< content of the file
  std::vector<std::string> overrides;
  std::vector<Cell> cells;
};

/// The study described by a file's text (see config/study_file.hpp) and the overrides
/// "section.key=value" for all its cells. A cell has the settings of the study, then of its part,
/// its variant, and the other axes; later settings replace earlier ones.
///
/// `workers` are the ranks that train; servers are added, so that a cell has the ranks it needs. A
/// cell is called PART-LABEL-LABEL..., with one label per axis: variants and texts as they are,
/// workers w2, run.seed s1, data.input_size px224, data.global_batch b64, other numbers after the
/// last word of their key.
///
/// Error(usage) lists every problem of file and overrides, one per line; an override of an axis, or
/// of what variants set, is one, because cells would differ in nothing but their names.
Study read_study(std::string const& text, std::string const& file,
                 std::vector<std::string> const& overrides, KnownNames const& names,
                 Environment const& environment);

}  // namespace stratagem
