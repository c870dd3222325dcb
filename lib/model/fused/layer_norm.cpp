#include "model/fused/layer_norm.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/contract.hpp"
#include "gpu/device.hpp"
#include "gpu/layers/layer_norm.hpp"
#include "model/fused/maps.hpp"

namespace stratagem {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool suit(at::Tensor const& x, at::Tensor const& weight) {
  return rows_of(x) && weight.scalar_type() == at::kFloat;
}

class Fused : public torch::autograd::Function<Fused> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& x, at::Tensor const& weight,
                            at::Tensor const& bias, double eps) {
    auto const mean = at::empty({rows_of(x)->rows}, weight.options());
    auto const inverse_deviation = at::empty_like(mean);
    context->save_for_backward({x, weight, mean, inverse_deviation});
    return compute(x, weight, bias, eps, mean, inverse_deviation);
  }

  static at::Tensor compute(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& bias,
                            double eps, at::Tensor const& mean,
                            at::Tensor const& inverse_deviation) {
    auto const y = at::empty_like(x);
    gpu::layer_norm(gpu::LayerNormForward{.maps = *rows_of(x),
                                          .x = x.data_ptr(),
                                          .y = y.data_ptr(),
                                          .weight = weight.data_ptr<float>(),
                                          .bias = bias.data_ptr<float>(),
                                          .mean = mean.data_ptr<float>(),
                                          .inverse_deviation = inverse_deviation.data_ptr<float>(),
                                          .eps = static_cast<float>(eps)},
                    gpu::Device::of(x.device()));
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    auto const saved = context->get_saved_variables();
    auto const &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse_deviation = saved[3];
    auto const of_y = gradients[0].contiguous();
    auto const of_x = at::empty_like(x), of_weight = at::empty_like(weight);
    auto const of_bias = at::empty_like(weight);
    auto const maps = *rows_of(x);
    auto const scratch = at::empty({gpu::scratch_of(maps)}, weight.options());
    gpu::layer_norm(gpu::LayerNormBackward{.maps = maps,
                                           .x = x.data_ptr(),
                                           .of_y = of_y.data_ptr(),
                                           .of_x = of_x.data_ptr(),
                                           .weight = weight.data_ptr<float>(),
                                           .mean = mean.data_ptr<float>(),
                                           .inverse_deviation = inverse_deviation.data_ptr<float>(),
                                           .of_weight = of_weight.data_ptr<float>(),
                                           .of_bias = of_bias.data_ptr<float>(),
                                           .scratch = scratch.data_ptr<float>()},
                    gpu::Device::of(x.device()));
    return {of_x, of_weight, of_bias, {}};
  }
};

}  // namespace

at::Tensor layer_norm(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& bias,
                      double eps, bool fused) {
  bool const narrow = x.element_size() == 2;
  if (fused && narrow && x.is_cuda() && suit(x, weight))
    return fused_layer_norm(x, weight, bias, eps);
  auto const wide = narrow ? x.to(at::kFloat) : x;
  return at::layer_norm(wide, weight.sizes(), weight, bias, eps).to(x.scalar_type());
}

at::Tensor fused_layer_norm(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& bias,
                            double eps) {
  expects(suit(x, weight), "rows of whole vectors");
  if (at::GradMode::is_enabled()) return Fused::apply(x, weight, bias, eps);
  auto const mean = at::empty({rows_of(x)->rows}, weight.options());
  return Fused::compute(x, weight, bias, eps, mean, at::empty_like(mean));
}

}  // namespace stratagem
