#pragma once

#include "gpu/layers/batch_norm.hpp"

namespace stratagem {

/// Whether there is one for maps of this type: of fp32. With others LibTorch's is as fast.
bool has_norm_on_cpu(gpu::Maps const& maps);

/// BatchNorm, what is added to it, and its activation on the CPU, row by row: forward and backward
/// passes read their maps twice. Sums of a channel are made over slices of rows, then over slices,
/// in an order that does not depend on the number of threads. `scratch` is not used.
void norm_on_cpu(gpu::NormForward const& pass);
void norm_on_cpu(gpu::NormBackward const& pass);

}  // namespace stratagem
