#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace stratagem {

/// The beginning of a gzip file's content.
struct Gunzipped {
  std::vector<std::byte> content;
  bool ended = false;            ///< this is all of it, and its checksum is right
  std::size_t unread_bytes = 0;  ///< of the compressed file, when it ended
};

/// The first `limit` bytes of the content of `compressed`, which was read from `path`; never
/// allocates more. Error(bad_data) if it is corrupt or truncated.
Gunzipped gunzip(std::filesystem::path const& path, std::span<std::byte const> compressed,
                 std::size_t limit);

}  // namespace stratagem
