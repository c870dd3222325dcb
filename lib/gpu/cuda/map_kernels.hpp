#pragma once

#include <cuda_runtime_api.h>

#include "gpu/batch_norm.hpp"
#include "gpu/bias_relu.hpp"
#include "gpu/layer_norm.hpp"

namespace stratagem::gpu {

// Need maps with has_kernels().
cudaError_t launch(NormForward const& pass, cudaStream_t stream);
cudaError_t launch(NormBackward const& pass, cudaStream_t stream);
cudaError_t launch(BiasForward const& pass, cudaStream_t stream);
cudaError_t launch(BiasBackward const& pass, cudaStream_t stream);
cudaError_t launch(LayerNormForward const& pass, cudaStream_t stream);
cudaError_t launch(LayerNormBackward const& pass, cudaStream_t stream);

}  // namespace stratagem::gpu
