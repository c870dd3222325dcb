#include "gpu/branch.hpp"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "gpu/cuda/check.hpp"
#include "gpu/cuda/compute_stream.hpp"
#include "gpu/stream.hpp"

namespace stratagem::gpu {
namespace {

using c10::cuda::CUDAStream;

/// While it lives, LibTorch computes on a branch's stream.
c10::cuda::CUDAStreamGuard on(std::shared_ptr<void> const& stream) {
  return c10::cuda::CUDAStreamGuard(*static_cast<CUDAStream*>(stream.get()));
}

}  // namespace

bool Branch::possible(Device const& device) {
  if (device.kind == DeviceKind::cpu) return false;
  auto status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(torch_stream(device), &status), "cudaStreamIsCapturing");
  return status == cudaStreamCaptureStatusActive;
}

void Branch::run(Device const& device, std::vector<at::Tensor> const& operands,
                 std::function<void()> const& body) {
  if (!possible(device)) return body();
  if (!stream_)
    stream_ = std::make_shared<CUDAStream>(
        c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(device.index)));
  Event begun(device);
  begun.record(Stream::compute(device));
  {
    auto const guard = on(stream_);
    begun.wait_on_stream(Stream::compute(device));
    body();
  }
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  open_ = device;
}

void Branch::join() {
  if (!open_) return;
  Event done(*open_);
  {
    auto const guard = on(stream_);
    done.record(Stream::compute(*open_));
  }
  done.wait_on_stream(Stream::compute(*open_));
  operands_.clear();
  open_.reset();
}

}  // namespace stratagem::gpu
