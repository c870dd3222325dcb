#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace stratagem {

/// A regular file, open for reading at any position, by any number of threads at once.
class RandomAccessFile {
 public:
  /// Error(bad_data) with path and reason if it cannot be opened or is not a regular file.
  explicit RandomAccessFile(std::filesystem::path path);
  ~RandomAccessFile();
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&&) = delete;

  std::filesystem::path const& path() const { return path_; }
  std::int64_t size() const { return size_; }  ///< when it was opened [B]

  /// Fills `into` from `offset` on [B]. Error(bad_data) if the file ends before, or cannot be read.
  void read(std::int64_t offset, std::span<std::byte> into) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace stratagem
