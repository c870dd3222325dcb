#include "gpu/cuda/layer_kernels.hpp"

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

void bias_relu(BiasForward const& pass, Device const& device) {
  if (device.kind == DeviceKind::cpu) return bias_relu_on_host(pass);
  check(launch(pass, torch_stream(device)), "bias_relu");
}

void bias_relu(BiasBackward const& pass, Device const& device) {
  if (device.kind == DeviceKind::cpu) return bias_relu_on_host(pass);
  check(launch(pass, torch_stream(device)), "bias_relu");
}

void layer_norm(LayerNormForward const& pass, Device const& device) {
  if (device.kind == DeviceKind::cpu) return layer_norm_on_host(pass);
  check(launch(pass, torch_stream(device)), "layer_norm");
}

void layer_norm(LayerNormBackward const& pass, Device const& device) {
  if (device.kind == DeviceKind::cpu) return layer_norm_on_host(pass);
  check(launch(pass, torch_stream(device)), "layer_norm");
}

void cross_entropy(CrossEntropyPass const& pass, Device const& device) {
  if (device.kind == DeviceKind::cpu) return cross_entropy_on_host(pass);
  check(launch(pass, torch_stream(device)), "cross_entropy");
}

}  // namespace stratagem::gpu
