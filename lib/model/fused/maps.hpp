#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "gpu/device.hpp"
#include "gpu/layers/maps.hpp"

namespace stratagem {

/// x [n, channels, height, width] in channels_last, as kernels see it; none if they do not take it.
std::optional<gpu::Maps> maps_of(at::Tensor const& x);

/// x [..., channels], contiguous, likewise: a row per vector of channels.
std::optional<gpu::Maps> rows_of(at::Tensor const& x);

/// Where it lies.
gpu::Device home_of(at::Tensor const& x);

}  // namespace stratagem
