#pragma once

#include <cuda_runtime_api.h>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// LibTorch's current stream on `device`. In a source file of its own, so that tests without a GPU
/// can replace it.
cudaStream_t torch_stream(Device const& device);

}  // namespace stratagem::gpu
