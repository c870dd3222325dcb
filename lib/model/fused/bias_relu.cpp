#include "model/fused/bias_relu.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/contract.hpp"
#include "gpu/device.hpp"
#include "gpu/layers/bias_relu.hpp"
#include "model/fused/maps.hpp"

namespace stratagem {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool suit(at::Tensor const& y, at::Tensor const& bias) {
  return maps_of(y) && bias.dtype() == y.dtype() && bias.numel() == y.size(1);
}

void compute(at::Tensor const& y, at::Tensor const& bias) {
  gpu::bias_relu(gpu::BiasForward{*maps_of(y), y.data_ptr(), bias.data_ptr()},
                 gpu::Device::of(y.device()));
}

class Fused : public torch::autograd::Function<Fused> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& y, at::Tensor const& bias) {
    compute(y, bias);
    context->mark_dirty({y});
    context->save_for_backward({y});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    auto const y = context->get_saved_variables().front();
    auto const maps = *maps_of(y);
    auto const of_y = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    auto const of_x = at::empty_like(y), of_bias = at::empty({maps.channels}, y.options());
    auto const scratch = at::empty({gpu::scratch_of(maps)}, y.options().dtype(at::kFloat));
    gpu::bias_relu(gpu::BiasBackward{maps, y.data_ptr(), of_y.data_ptr(), of_x.data_ptr(),
                                     of_bias.data_ptr(), scratch.data_ptr<float>()},
                   gpu::Device::of(y.device()));
    return {of_x, of_bias};
  }
};

}  // namespace

at::Tensor bias_relu(at::Tensor y, at::Tensor const& bias, bool fused) {
  if (fused && y.is_cuda() && suit(y, bias)) return fused_bias_relu(y, bias);
  return y.add_(bias.view({-1, 1, 1})).relu_();
}

at::Tensor fused_bias_relu(at::Tensor const& y, at::Tensor const& bias) {
  expects(suit(y, bias), "maps in channels_last with whole vectors");
  if (at::GradMode::is_enabled()) return Fused::apply(y, bias);
  compute(y, bias);
  return y;
}

}  // namespace stratagem
