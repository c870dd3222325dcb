#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "gpu/stream.hpp"

namespace stratagem::gpu {

SideStream::SideStream(Device const& device) : device_(device) {
  if (device.kind == DeviceKind::cpu) return;
  auto const index = static_cast<c10::DeviceIndex>(device.index);
  native_ = std::make_shared<c10::cuda::CUDAStream>(c10::cuda::getStreamFromPool(false, index));
}

void SideStream::run(std::function<void()> const& body) const {
  if (!native_) return body();
  Event made(device_);
  {
    c10::cuda::CUDAStreamGuard const guard(*static_cast<c10::cuda::CUDAStream*>(native_.get()));
    body();
    made.record(Stream::compute(device_));
  }
  made.wait_on_stream(Stream::compute(device_));
}

void SideStream::hand_over(at::Tensor const& tensor) const {
  if (!native_) return;
  auto const index = static_cast<c10::DeviceIndex>(device_.index);
  tensor.record_stream(c10::cuda::getCurrentCUDAStream(index).unwrap());
}

}  // namespace stratagem::gpu
