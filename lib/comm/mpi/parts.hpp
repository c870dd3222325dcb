#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace stratagem {

/// `whole` divided into messages of at most `limit` bytes, in order; one empty message if it is
/// empty.
inline std::vector<std::span<std::byte>> parts_of(std::span<std::byte> whole, std::size_t limit) {
  std::vector<std::span<std::byte>> parts;
  do {
    parts.push_back(whole.first(std::min(whole.size(), limit)));
    whole = whole.subspan(parts.back().size());
  } while (!whole.empty());
  return parts;
}

}  // namespace stratagem
