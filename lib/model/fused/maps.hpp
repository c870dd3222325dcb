#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "gpu/layers/maps.hpp"

namespace stratagem {

/// x [n, channels, height, width] in channels_last, as kernels see it; none if they do not take it.
std::optional<gpu::Maps> maps_of(at::Tensor const& x);

/// x [..., channels], contiguous, likewise: a row per vector of channels.
std::optional<gpu::Maps> rows_of(at::Tensor const& x);

/// Of x [n, channels, height, width] in rows of channels, one per pixel of each sample: elements
/// from each row to the next. None if these differ.
std::optional<std::int64_t> row_stride_of(at::Tensor const& x);

}  // namespace stratagem
