#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/convolution.hpp"

namespace stratagem {

/// Which taps of a kernel meet which pixels of a map. Pixels are counted row by row, taps likewise;
/// numbers of a pixel, or of a tap, lie together.
struct TapPlan {
  TapPlan(at::Tensor const& x, at::Tensor const& weight, Window const& given)
      : samples(x.size(0)),
        channels(x.size(1)),
        height(x.size(2)),
        width(x.size(3)),
        out(weight.size(0)),
        in(weight.size(1)),
        kernel(weight.size(2)),
        window(given),
        out_height(extent(height)),
        out_width(extent(width)) {}

  /// Taps of one row of the kernel that meet neighbouring pixels: first elements in [pixels *
  /// channels] of the input, [taps * in] of the weight and [pixels * out] of the output, and how
  /// many elements of the first two.
  struct Run {
    std::int64_t x, weight, y, width;
  };
  std::vector<Run> runs() const {
    std::vector<Run> found;
    for (std::int64_t row = 0; row < out_height; ++row)
      for (std::int64_t column = 0; column < out_width; ++column)
        for (std::int64_t tap_row = 0; tap_row < kernel; ++tap_row) {
          auto const y = row * window.stride - window.padding + tap_row;
          auto const left = column * window.stride - window.padding;
          auto const first = std::max<std::int64_t>(0, -left);
          auto const last = std::min(kernel, width - left);
          if (y < 0 || y >= height || first >= last) continue;
          found.push_back({(y * width + left + first) * channels, (tap_row * kernel + first) * in,
                           (row * out_width + column) * out, (last - first) * channels});
        }
    return found;
  }

  std::int64_t in_pixels() const { return height * width; }
  std::int64_t out_pixels() const { return out_height * out_width; }

  std::int64_t samples, channels, height, width;  ///< of the input
  std::int64_t out, in, kernel;                   ///< of the weight [out, in, kernel, kernel]
  Window window;
  std::int64_t out_height, out_width;

 private:
  std::int64_t extent(std::int64_t of_input) const {
    return (of_input + 2 * window.padding - kernel) / window.stride + 1;
  }
};

}  // namespace stratagem
