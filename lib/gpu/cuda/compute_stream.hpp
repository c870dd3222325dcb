#pragma once

#include <cuda_runtime_api.h>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// LibTorch's current stream on `device`. In a source of its own: tests without a GPU replace it.
cudaStream_t torch_stream(Device const& device);

}  // namespace stratagem::gpu
