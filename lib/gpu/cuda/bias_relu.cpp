#include "gpu/bias_relu.hpp"

#include "gpu/cuda/bias_relu_kernel.hpp"
#include "gpu/cuda/check.hpp"
#include "gpu/cuda/compute_stream.hpp"
#include "gpu/device.hpp"

namespace stratagem::gpu {

void bias_relu(BiasForward const& pass, Device const& device) {
  if (device.kind == DeviceKind::cpu) return bias_relu_on_host(pass);
  check(launch(pass, torch_stream(device)), "bias_relu");
}

void bias_relu(BiasBackward const& pass, Device const& device) {
  if (device.kind == DeviceKind::cpu) return bias_relu_on_host(pass);
  check(launch(pass, torch_stream(device)), "bias_relu");
}

}  // namespace stratagem::gpu
