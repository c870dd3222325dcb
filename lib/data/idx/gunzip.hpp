#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace stratagem {

/// What the beginning of a gzip file holds.
struct Gunzipped {
  std::vector<std::byte> content;
  bool ended = false;            ///< this is all of it, and its checksum holds
  std::size_t unread_bytes = 0;  ///< of the compressed file, when it ended
};

/// Deflate packs no tighter than this: a match of 258 bytes takes two bits.
inline constexpr std::size_t deflate_max_ratio = 1032;

/// The first `limit` bytes of what `compressed`, the content of `path`, holds; never allocates
/// more. Error(bad_data) when it is corrupt or ends before its stream does.
Gunzipped gunzip(std::filesystem::path const& path, std::span<std::byte const> compressed,
                 std::size_t limit);

}  // namespace stratagem
