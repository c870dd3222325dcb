#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace stratagem::gpu {

/// A KeepMask as a kernel takes it.
struct MaskLaunch {
  std::uint32_t key[2];
  std::uint64_t first;
  std::int64_t samples, count;
  double p;
};

/// Of a mask with elements.
cudaError_t launch(MaskLaunch const& mask, float* target, cudaStream_t stream);

}  // namespace stratagem::gpu
