#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace stratagem::h5 {

enum class ColumnType { integer, real, text };

/// Longest text in a text column [bytes]; longer ones are cut.
inline constexpr std::size_t text_width = 96;

/// A 1-D dataset: what it contains, and what readers must know about it.
struct ColumnSpec {
  std::string name;
  ColumnType type;
  std::string unit;       ///< "ns", "B", "1" for a pure number, "" for text
  std::string long_name;  ///< a few words
};

/// A group of columns of equal length. `path` is absolute, "/steps".
struct TableSpec {
  std::string path;
  std::vector<ColumnSpec> columns;
};

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;
using Texts = std::vector<std::string>;
/// The content of a column; the alternatives are in the order of ColumnType.
using ColumnData = std::variant<Integers, Reals, Texts>;

using AttributeValue = std::variant<std::int64_t, double, std::string>;

}  // namespace stratagem::h5
