#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "h5/column.hpp"
#include "h5/handle.hpp"

namespace stratagem::h5 {

/// One group of growing columns in a file being written.
class TableWriter {
 public:
  TableWriter(TableWriter&&) = default;

  /// One entry per column of the spec, all of the same length. Hdf5Error if they cannot be written.
  void append(std::vector<ColumnData> const& columns);
  void flush();
  void close();
  std::int64_t rows() const { return rows_; }
  TableSpec const& spec() const { return spec_; }

 private:
  friend class FileWriter;
  TableWriter(TableSpec spec, std::string file) : spec_(std::move(spec)), file_(std::move(file)) {}

  TableSpec spec_;
  std::string file_;  ///< for messages
  std::vector<Handle> datasets_;
  std::int64_t rows_ = 0;
};

/// A new file. In streaming mode (HDF5's SWMR), it can be read while it grows and after its writer
/// was killed: create everything first, then call start_streaming(), then only append. In archive
/// mode, columns are compressed.
class FileWriter {
 public:
  enum class Mode { streaming, archive };

  /// Fails if `path` exists.
  FileWriter(std::filesystem::path const& path, Mode mode);

  void set_attribute(std::string const& group, std::string const& name,
                     AttributeValue const& value);
  void create_group(std::string const& path);
  TableWriter create_table(TableSpec const& spec);

  void start_streaming();
  /// Everything appended so far reaches the kernel and, if `to_disk`, the disk.
  void flush(bool to_disk);
  /// Hdf5Error if the end could not be written. Close the tables first.
  void close();

 private:
  std::filesystem::path path_;
  Mode mode_;
  Handle file_;
};

}  // namespace stratagem::h5
