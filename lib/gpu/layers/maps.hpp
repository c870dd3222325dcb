#pragma once

#include <algorithm>
#include <cstdint>

#include "base/arithmetic.hpp"
#include "gpu/element.hpp"

namespace stratagem::gpu {

/// Maps of a batch as a matrix: a row per pixel of each sample, a column per channel, without gaps.
struct Maps {
  std::int64_t rows, channels;
  Element type;
};

/// How the rows of a column are added up: this order gives the bits. A block of threads has the
/// columns of a few vectors of four channels. Each thread adds every strides()-th row of a slice,
/// then threads are added in a tree, then slices in parts.
struct ColumnSums {
  static constexpr int threads = 512, warp = 32, width = 4;

  explicit constexpr ColumnSums(Maps const& maps)
      : one_slice(maps.rows <= 2048),
        vectors((one_slice ? 2 : 4) * (maps.type == Element::fp32 ? 1 : 2)) {
    auto const groups = ceil_div(maps.channels, columns());
    if (!one_slice) slices = std::clamp<std::int64_t>(256 / groups, 1, 128);
    rows = ceil_div(maps.rows, slices);
  }

  constexpr int columns() const { return vectors * width; }
  constexpr int strides() const { return threads / vectors; }
  constexpr int parts() const { return threads / columns(); }

  bool one_slice;  ///< a block has all rows of its columns, and no other kernel is needed
  int vectors;     ///< of a block
  std::int64_t slices = 1, rows = 0;  ///< of a slice
};

/// Whether there are kernels for such maps: rows of whole vectors, and more than one.
constexpr bool has_kernels(Maps const& maps) {
  return maps.rows > 1 && maps.channels > 0 && maps.channels % ColumnSums::width == 0;
}

/// Floats of working memory in which slices' sums are kept, two of a column.
constexpr std::int64_t scratch_of(Maps const& maps) {
  return 2 * ColumnSums(maps).slices * maps.channels;
}

}  // namespace stratagem::gpu
