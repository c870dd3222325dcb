#include "gpu/cuda/compute_stream.hpp"

#include <c10/cuda/CUDAStream.h>

namespace stratagem::gpu {

cudaStream_t torch_stream(Device const& device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device.index)).stream();
}

}  // namespace stratagem::gpu
