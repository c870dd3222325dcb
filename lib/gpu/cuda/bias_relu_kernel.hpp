#pragma once

#include <cuda_runtime_api.h>

#include "gpu/bias_relu.hpp"

namespace stratagem::gpu {

// Need maps with has_kernels().
cudaError_t launch(BiasForward const& pass, cudaStream_t stream);
cudaError_t launch(BiasBackward const& pass, cudaStream_t stream);

}  // namespace stratagem::gpu
