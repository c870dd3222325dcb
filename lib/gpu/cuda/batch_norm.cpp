#include "gpu/batch_norm.hpp"

#include "gpu/cuda/batch_norm_kernel.hpp"
#include "gpu/cuda/check.hpp"
#include "gpu/cuda/compute_stream.hpp"
#include "gpu/device.hpp"

namespace stratagem::gpu {

void batch_norm(NormForward const& pass, Device const& device) {
  if (device.kind == DeviceKind::cpu) return batch_norm_on_host(pass);
  check(launch(pass, torch_stream(device)), "batch_norm");
}

void batch_norm(NormBackward const& pass, Device const& device) {
  if (device.kind == DeviceKind::cpu) return batch_norm_on_host(pass);
  check(launch(pass, torch_stream(device)), "batch_norm");
}

}  // namespace stratagem::gpu
