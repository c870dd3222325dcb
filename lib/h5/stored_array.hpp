#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "h5/handle.hpp"

namespace stratagem::h5 {

/// Bytes of a file that hold one piece of an array.
struct StoredPiece {
  std::int64_t offset = 0;  ///< in the file [B]
  std::int64_t size = 0;    ///< as stored [B]
  bool packed = false;      ///< by zlib (RFC 1950)
};

/// Where an array of unsigned bytes stands in its file, so that any thread may read it without the
/// library, which most builds of it do not allow.
struct StoredArray {
  std::filesystem::path file;  ///< that holds it
  std::vector<std::int64_t> shape;
  std::int64_t rows_per_piece = 0;  ///< along the first dimension; the last piece may be padded
  std::vector<StoredPiece>
      pieces;  ///< in order of their rows, each with all of the other dimensions
};

struct FileAttribute {
  std::int64_t elements = 0;
  std::optional<std::string> text;     ///< of one element that is no array of one
  std::optional<std::int64_t> number;  ///< likewise
};

/// A file of arrays. Errors are Error(bad_data) that name file, dataset, expected and found.
class ArrayFile {
 public:
  explicit ArrayFile(std::filesystem::path const& path);

  bool has(std::string const& dataset) const;
  /// Of a dataset of unsigned bytes with `dimensions` dimensions.
  std::vector<std::int64_t> shape(std::string const& dataset, std::size_t dimensions) const;
  /// The same, with where its bytes are: in one block, or in chunks of whole rows, which may be
  /// compressed by gzip.
  StoredArray bytes(std::string const& dataset, std::size_t dimensions) const;
  /// A row of such a dataset, as the library reads it.
  std::vector<std::byte> row(std::string const& dataset, std::int64_t row) const;
  /// A dataset of `count` integers of any size.
  std::vector<std::int64_t> integers(std::string const& dataset, std::int64_t count) const;
  /// A short text attribute of a dataset; empty if there is none.
  std::optional<std::string> text(std::string const& dataset, std::string const& attribute) const;
  /// Of the file; empty if there is none.
  std::optional<FileAttribute> attribute(std::string const& name) const;

 private:
  Handle open(std::string const& dataset) const;

  std::filesystem::path path_;
  Handle file_;
};

}  // namespace stratagem::h5
