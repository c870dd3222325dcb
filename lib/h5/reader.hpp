#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "h5/column.hpp"
#include "h5/handle.hpp"

namespace stratagem::h5 {

/// Whole columns by name. If the writer was killed, some columns may be longer than others: `rows`
/// is the smallest length, and every column is cut to it.
struct TableData {
  std::int64_t rows = 0;
  std::map<std::string, ColumnData> columns;

  Integers const& integers(std::string const& name) const;
  Reals const& reals(std::string const& name) const;
  Texts const& texts(std::string const& name) const;
};

/// A file opened for reading, also while its writer is alive, or after it was killed. Hdf5Error if
/// it is not an HDF5 file.
class FileReader {
 public:
  explicit FileReader(std::filesystem::path const& path);

  /// False if its writer was killed or is still writing.
  bool closed_cleanly() const { return closed_cleanly_; }

  bool has(std::string const& path) const;
  std::optional<AttributeValue> attribute(std::string const& group, std::string const& name) const;
  std::map<std::string, AttributeValue> attributes(std::string const& group) const;
  std::vector<std::string> children(std::string const& group) const;

  /// Error(bad_data) that names the column if it is missing, has another type, or is longer than
  /// max_rows or than the file can hold (a damaged length must not become an allocation).
  TableData read_table(TableSpec const& spec) const;

  static constexpr std::int64_t max_rows = 200'000'000;

 private:
  void check_believable(TableSpec const& spec, std::int64_t rows) const;

  std::filesystem::path path_;
  std::uintmax_t file_bytes_ = 0;
  Handle file_;
  bool closed_cleanly_ = true;
};

}  // namespace stratagem::h5
