#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/problems.hpp"

namespace stratagem {

/// What a study varies: a key of the configuration, `variant` or `workers`, and its values.
struct Axis {
  struct Value {
    Scalar scalar;
    Place place;
  };

  std::string name;
  Place place;
  std::vector<Value> values;
};

/// Cells that are left out: those which have, on each of these axes, one of its values.
struct Exclusion {
  Place place;
  std::vector<Axis> where;
};

/// Settings under a name, for the axis `variant`.
struct Variant {
  std::string name;
  Place place;
  Document settings;
};

/// One matrix of a study, over settings of its own.
struct StudyPart {
  std::string name;
  Place place;
  Document base;
  std::vector<Axis> matrix;
  std::vector<Exclusion> exclude;
};

/// A study as it was written. Names of parts and variants can be parts of file names.
struct StudyFile {
  std::string name;
  Place begin;
  Document base;
  std::vector<Variant> variants;
  std::vector<StudyPart> parts;
};

/// Reads
///
///     schema: 1
///     name: NAME
///     base: {SECTION: {KEY: VALUE}}                  # of every cell
///     variants: {VARIANT: {SECTION: {KEY: VALUE}}}
///     parts:
///       PART:
///         base: {SECTION: {KEY: VALUE}}
///         matrix: {SECTION.KEY: [VALUE, ...], variant: [VARIANT, ...], workers: [N, ...]}
///         exclude: [{AXIS: VALUE or [VALUE, ...], ...}, ...]
///
/// where only `name` and one part with a matrix must be given. What keys and values mean is not
/// looked at. Nothing is returned where the text is no YAML; else, while there are problems, what
/// is returned is not whole.
std::optional<StudyFile> read_study_file(std::string const& text, std::string const& file,
                                         Problems& problems);

/// Whether the text is meant as a study: YAML with `parts`, which no configuration has.
bool is_study_text(std::string const& text);
/// Whether it is meant as a configuration: YAML with sections that no study has at its top.
bool is_configuration_text(std::string const& text);

}  // namespace stratagem
