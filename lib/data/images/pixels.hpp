#pragma once

#include <cstdint>
#include <vector>

namespace stratagem {

struct ImageSize {
  std::int64_t height = 0, width = 0;  ///< [pixels]

  bool operator==(ImageSize const&) const = default;
};

/// A part of an image.
struct Region {
  std::int64_t top = 0, left = 0, height = 0, width = 0;  ///< [pixels]

  bool operator==(Region const&) const = default;
};

/// 8-bit pixels [height, width, channels], interleaved. `values` keeps its capacity from image to
/// image.
struct Pixels {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> values;

  /// Values of one row.
  std::int64_t row_values() const { return width * channels; }
  std::uint8_t* row(std::int64_t y) { return values.data() + y * row_values(); }
  std::uint8_t const* row(std::int64_t y) const { return values.data() + y * row_values(); }

  /// What the pixels hold afterwards is unspecified.
  void resize(std::int64_t new_height, std::int64_t new_width, std::int64_t new_channels) {
    height = new_height;
    width = new_width;
    channels = new_channels;
    values.resize(static_cast<std::size_t>(height * width * channels));
  }
};

}  // namespace stratagem
