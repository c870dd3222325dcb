#pragma once

#include <cuda_runtime_api.h>

#include "gpu/layers/batch_norm.hpp"
#include "gpu/layers/bias_relu.hpp"
#include "gpu/layers/cross_entropy.hpp"
#include "gpu/layers/layer_norm.hpp"

namespace stratagem::gpu {

// Maps have has_kernels().
cudaError_t launch(NormForward const& pass, cudaStream_t stream);
cudaError_t launch(NormBackward const& pass, cudaStream_t stream);
cudaError_t launch(BiasForward const& pass, cudaStream_t stream);
cudaError_t launch(BiasBackward const& pass, cudaStream_t stream);
cudaError_t launch(LayerNormForward const& pass, cudaStream_t stream);
cudaError_t launch(LayerNormBackward const& pass, cudaStream_t stream);
/// Needs a row.
cudaError_t launch(CrossEntropyPass const& pass, cudaStream_t stream);

}  // namespace stratagem::gpu
