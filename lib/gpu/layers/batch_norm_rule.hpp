#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/layers/batch_norm.hpp"

namespace stratagem::gpu {

// What a channel's sums become. The same on host and device, each operation rounded by itself.

/// Of the values of a channel.
struct Moments {
  float mean, variance;
};

/// From sums of x - first and of its square, where `first` is one of the values: the mean is not
/// far from it, so little is lost in the difference of two squares.
constexpr Moments moments_of(float first, float sum, float squares, std::int64_t rows) {
  auto const count = static_cast<float>(rows);
  float const offset = sum / count;
  float const variance = squares / count - offset * offset;
  return {first + offset, variance < 0 ? 0 : variance};  // NaN stays
}

constexpr float inverse_deviation_of(float variance, float eps) {
  return 1 / std::sqrt(variance + eps);
}

/// A running statistic.
constexpr float moved(float running, float towards, float momentum) {
  return running + momentum * (towards - running);
}

constexpr float unbiased(float variance, std::int64_t rows) {
  return variance * (static_cast<float>(rows) / static_cast<float>(rows - 1));
}

/// The affine map of a channel.
struct ChannelMap {
  float mean, scale, bias;  ///< scale: weight / deviation

  constexpr float operator()(float x) const { return (x - mean) * scale + bias; }
};

/// The gradient of a channel's values from that of the map's results.
struct ChannelGradient {
  float mean, inverse_deviation, scale;
  float mean_gradient, mean_product;  ///< of gradient, of gradient times normalised value

  constexpr float normalised(float x) const { return (x - mean) * inverse_deviation; }
  constexpr float operator()(float x, float gradient) const {
    return scale * ((gradient - mean_gradient) - normalised(x) * mean_product);
  }
};

}  // namespace stratagem::gpu
