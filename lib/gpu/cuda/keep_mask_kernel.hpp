#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace stratagem::gpu {

/// A KeepMask in the form that a kernel takes.
struct MaskLaunch {
  std::uint32_t key[2];
  std::uint64_t first;
  std::int64_t samples, count;
  double p;
  std::uint64_t const* later;  ///< added to first; may be null
};

/// Needs a mask with at least one element.
cudaError_t launch(MaskLaunch const& mask, float* target, cudaStream_t stream);

}  // namespace stratagem::gpu
