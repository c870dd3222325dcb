#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "gpu/landing.hpp"

namespace stratagem::gpu {

/// As many landings as a kernel's parameters hold (4 KiB), each cut into pieces, one per thread
/// block.
struct LandingLaunch {
  static constexpr int most = 92;
  static constexpr std::int64_t piece = 1 << 14;  ///< elements

  Landing landings[most];
  std::int32_t first_block[most + 1];  ///< of each; then the number of all
  int count;
};

cudaError_t launch(LandingLaunch const& launch, cudaStream_t stream);

}  // namespace stratagem::gpu
