#pragma once

#include <cstddef>

namespace stratagem {

/// The best compression of deflate, in gzip, zlib and PNG: a match of 258 bytes takes two bits.
inline constexpr std::size_t deflate_max_ratio = 1032;

}  // namespace stratagem
