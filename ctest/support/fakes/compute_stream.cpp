#include "gpu/cuda/compute_stream.hpp"

namespace stratagem::gpu {

/// Takes the place of LibTorch's, which asks the driver.
cudaStream_t torch_stream(Device const&) {
  return nullptr;
}

}  // namespace stratagem::gpu
