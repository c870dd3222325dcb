#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/random_access_file.hpp"

namespace stratagem {

/// Consecutive tokens of a file, which stays on disk, or of memory. Copies share both.
class TokenText {
 public:
  /// `count` tokens of `width` bytes (1, 2 or 4, little-endian) from byte `offset` of the file on,
  /// which has them.
  TokenText(std::shared_ptr<RandomAccessFile const> file, std::int64_t offset, std::int64_t count,
            int width);
  explicit TokenText(std::vector<std::uint8_t> tokens);

  std::int64_t size() const { return count_; }
  /// For messages: "books/train.txt".
  std::string name() const;
  /// Of its bytes: of memory all, of files their names, sizes and samples from the whole length.
  std::string identity() const;

  /// Tokens [first, first + count).
  TokenText part(std::int64_t first, std::int64_t count) const;
  /// Tokens from `first` on. Error(bad_data) if the file has become shorter.
  void read(std::int64_t first, std::span<std::int64_t> into) const;
  /// Where a token stands in the file [B].
  std::int64_t place_of(std::int64_t token) const { return offset_ + token * width_; }

 private:
  void read_bytes(std::int64_t offset, std::span<std::byte> into) const;

  std::shared_ptr<RandomAccessFile const> file_;
  std::shared_ptr<std::vector<std::uint8_t> const> memory_;  ///< where there is no file
  std::int64_t offset_ = 0;                                  ///< [B]
  std::int64_t count_ = 0;
  int width_ = 1;  ///< of a token [B]
};

}  // namespace stratagem
