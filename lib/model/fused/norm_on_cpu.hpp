#pragma once

#include <cstdint>

#include "gpu/layers/batch_norm.hpp"

namespace stratagem {

/// Whether there is one for maps of this type: of fp32. With others LibTorch's is as fast.
bool has_norm_on_cpu(gpu::Maps const& maps);

/// fp32, a row per pixel of each sample, `stride` elements after the one before.
struct StridedRows {
  float const* first = nullptr;
  std::int64_t stride = 0;

  float const* row(std::int64_t index) const { return first + index * stride; }
};

/// Of each channel of some rows.
struct ChannelMoments {
  float* mean = nullptr;
  float* variance = nullptr;
};

/// Sums of a channel are made over slices of rows, then over slices, in an order that does not
/// depend on the number of threads.
void moments_on_cpu(gpu::Maps const& maps, StridedRows x, ChannelMoments moments);

/// BatchNorm, what is added to it, and its activation on the CPU, row by row: forward and backward
/// passes read their maps twice, but a forward pass for which moments are known once. `scratch` is
/// not used, and maps are contiguous but for x, whose rows are `x_stride` elements apart.
void norm_on_cpu(gpu::NormForward const& pass, std::int64_t x_stride, ChannelMoments known = {});
/// `further`: rows that are added to the gradient of x; may be null, and are if something was
/// added.
void norm_on_cpu(gpu::NormBackward const& pass, std::int64_t x_stride, StridedRows further = {});

}  // namespace stratagem
