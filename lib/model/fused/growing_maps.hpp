#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "model/fused/norm_on_cpu.hpp"

namespace stratagem {

// The maps of a dense block, whose layers append channels to those of all layers before. They share
// one memory, as in Pleiss et al., "Memory-efficient implementation of DenseNets", 2017: a layer
// writes its channels behind those that it was given, and nothing is copied. Behind the maps lie
// the moments of each channel, which many layers use.

/// fp32 in channels_last on a CPU, whole or the first channels of memory that has room for more.
struct GrowingMaps {
  gpu::Maps maps;
  StridedRows rows;
  ChannelMoments moments;  ///< null if the maps are whole

  bool has_room() const { return rows.stride > maps.channels; }
};

/// None if x [n, channels, height, width] is anything else.
std::optional<GrowingMaps> growing_maps_of(at::Tensor const& x);

/// [n, channels of both, height, width], of growing maps x; the memory of x, if it has room, or
/// else new memory for `width` channels. A second call with the same x replaces what the first
/// appended.
at::Tensor append(at::Tensor const& x, at::Tensor const& fresh, std::int64_t width);

}  // namespace stratagem
