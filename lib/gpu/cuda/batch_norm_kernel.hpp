#pragma once

#include <cuda_runtime_api.h>

#include "gpu/batch_norm.hpp"

namespace stratagem::gpu {

// Need maps with has_kernels().
cudaError_t launch(NormForward const& pass, cudaStream_t stream);
cudaError_t launch(NormBackward const& pass, cudaStream_t stream);

}  // namespace stratagem::gpu
