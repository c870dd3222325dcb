#include "model/fused/batch_norm.hpp"

#include <optional>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/contract.hpp"
#include "gpu/layers/batch_norm.hpp"
#include "model/fused/maps.hpp"
#include "model/fused/norm_on_cpu.hpp"

namespace stratagem {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool suit(at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of, NormKernels on_cpu) {
  auto const maps = maps_of(x);
  if (!maps || of.weight.scalar_type() != at::kFloat) return false;
  if (x.is_cpu() && on_cpu == NormKernels::own && !has_norm_on_cpu(*maps)) return false;
  return !added.defined() ||
         (maps_of(added) && added.sizes() == x.sizes() && added.dtype() == x.dtype());
}

/// By the kernels of where x lies. Pass: NormForward or NormBackward.
template <class Pass>
void run(Pass pass, at::Tensor const& x, NormKernels on_cpu) {
  if (x.is_cpu() && on_cpu == NormKernels::own) return norm_on_cpu(pass);
  auto const scratch = at::empty({gpu::scratch_of(pass.maps)}, x.options().dtype(at::kFloat));
  pass.scratch = scratch.template data_ptr<float>();
  gpu::batch_norm(pass, home_of(x));
}

class Fused : public torch::autograd::Function<Fused> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& x,
                            std::optional<at::Tensor> const& added, at::Tensor const& weight,
                            at::Tensor const& bias, BatchNormOf const& of, NormKernels on_cpu) {
    auto const mean = at::empty_like(weight), inverse_deviation = at::empty_like(weight);
    auto const y = compute(x, added.value_or(at::Tensor()), of, on_cpu, mean, inverse_deviation);
    bool const needs_y = added && of.activation != Activation::none;
    context->save_for_backward(
        {x, weight, bias, mean, inverse_deviation, needs_y ? y : at::Tensor()});
    context->saved_data["activation"] = static_cast<std::int64_t>(of.activation);
    context->saved_data["added"] = added.has_value();
    context->saved_data["kernels"] = static_cast<std::int64_t>(on_cpu);
    return y;
  }

  static at::Tensor compute(at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of,
                            NormKernels on_cpu, at::Tensor const& mean,
                            at::Tensor const& inverse_deviation) {
    auto const y = at::empty_like(x);
    auto const maps = *maps_of(x);
    run(
        gpu::NormForward{
            .maps = maps,
            .x = x.data_ptr(),
            .added = added.defined() ? added.data_ptr() : nullptr,
            .y = y.data_ptr(),
            .weight = of.weight.data_ptr<float>(),
            .bias = of.bias.data_ptr<float>(),
            .running_mean = of.running_mean.data_ptr<float>(),
            .running_var = of.running_var.data_ptr<float>(),
            .mean = mean.data_ptr<float>(),
            .inverse_deviation = inverse_deviation.data_ptr<float>(),
            .eps = static_cast<float>(of.eps),
            .momentum = static_cast<float>(of.momentum),
            .activation = of.activation,
        },
        x, on_cpu);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    auto const saved = context->get_saved_variables();
    auto const &x = saved[0], &weight = saved[1], &bias = saved[2], &mean = saved[3];
    auto const &inverse_deviation = saved[4], &y = saved[5];
    bool const added = context->saved_data["added"].toBool();
    auto const of_y = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    variable_list result(6);
    auto& of_x = result[0] = at::empty_like(x);
    auto& of_added = result[1];
    if (added) of_added = at::empty_like(x);
    result[2] = at::empty_like(weight);
    result[3] = at::empty_like(bias);
    auto const maps = *maps_of(x);
    run(
        gpu::NormBackward{
            .maps = maps,
            .x = x.data_ptr(),
            .y = y.defined() ? y.data_ptr() : nullptr,
            .of_y = of_y.data_ptr(),
            .of_x = of_x.data_ptr(),
            .of_added = added ? of_added.data_ptr() : nullptr,
            .weight = weight.data_ptr<float>(),
            .bias = bias.data_ptr<float>(),
            .mean = mean.data_ptr<float>(),
            .inverse_deviation = inverse_deviation.data_ptr<float>(),
            .of_weight = result[2].data_ptr<float>(),
            .of_bias = result[3].data_ptr<float>(),
            .activation = static_cast<Activation>(context->saved_data["activation"].toInt()),
        },
        x, static_cast<NormKernels>(context->saved_data["kernels"].toInt()));
    return result;
  }
};

}  // namespace

at::Tensor batch_norm(at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of,
                      bool training, bool fused) {
  if (fused && training && suit(x, added, of, NormKernels::own))
    return fused_batch_norm(x, added, of);
  auto y = at::batch_norm(x, of.weight, of.bias, of.running_mean, of.running_var, training,
                          of.momentum, of.eps, /*cudnn_enabled=*/true);
  if (added.defined()) y += added;
  if (of.activation == Activation::relu) y.relu_();
  return of.activation == Activation::silu ? at::silu(y) : y;
}

at::Tensor fused_batch_norm(at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of,
                            NormKernels on_cpu) {
  expects(suit(x, added, of, on_cpu), "maps in channels_last with whole vectors");
  expects(!added.defined() || of.activation != Activation::silu,
          "the result tells what came before the activation");
  if (at::GradMode::is_enabled())
    return Fused::apply(x, added.defined() ? std::optional(added) : std::nullopt, of.weight,
                        of.bias, of, on_cpu);
  auto const mean = at::empty_like(of.weight), inverse_deviation = at::empty_like(of.weight);
  return Fused::compute(x, added, of, on_cpu, mean, inverse_deviation);
}

}  // namespace stratagem
