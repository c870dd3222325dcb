#include "model/fused/batch_norm.hpp"

#include <optional>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/contract.hpp"
#include "gpu/device.hpp"
#include "gpu/layers/batch_norm.hpp"
#include "model/fused/growing_maps.hpp"
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
  if (x.is_cpu() && on_cpu == NormKernels::own) return norm_on_cpu(pass, pass.maps.channels);
  auto const scratch = at::empty({gpu::scratch_of(pass.maps)}, x.options().dtype(at::kFloat));
  pass.scratch = scratch.template data_ptr<float>();
  gpu::batch_norm(pass, gpu::Device::of(x.device()));
}

/// What a backward pass needs of the batch's statistics. fp32 [channels].
struct Statistics {
  explicit Statistics(at::Tensor const& weight)
      : mean(at::empty_like(weight)), inverse_deviation(at::empty_like(weight)) {}

  at::Tensor mean, inverse_deviation;
};

gpu::NormForward forward_pass(gpu::Maps const& maps, at::Tensor const& x, at::Tensor const& added,
                              at::Tensor const& y, BatchNormOf const& of,
                              Statistics const& statistics) {
  return {
      .maps = maps,
      .x = x.data_ptr(),
      .added = added.defined() ? added.data_ptr() : nullptr,
      .y = y.data_ptr(),
      .weight = of.weight.data_ptr<float>(),
      .bias = of.bias.data_ptr<float>(),
      .running_mean = of.running_mean.data_ptr<float>(),
      .running_var = of.running_var.data_ptr<float>(),
      .mean = statistics.mean.data_ptr<float>(),
      .inverse_deviation = statistics.inverse_deviation.data_ptr<float>(),
      .eps = static_cast<float>(of.eps),
      .momentum = static_cast<float>(of.momentum),
      .activation = of.activation,
  };
}

/// What a forward pass keeps, in this order; y: where a backward pass reads it.
struct Saved {
  at::Tensor x, weight, bias, mean, inverse_deviation, y;

  explicit Saved(AutogradContext& context) {
    auto const saved = context.get_saved_variables();
    x = saved[0], weight = saved[1], bias = saved[2];
    mean = saved[3], inverse_deviation = saved[4], y = saved[5];
  }
  static void save(AutogradContext& context, at::Tensor const& x, BatchNormOf const& of,
                   Statistics const& statistics, at::Tensor const& y) {
    context.save_for_backward(
        {x, of.weight, of.bias, statistics.mean, statistics.inverse_deviation, y});
    context.saved_data["activation"] = static_cast<std::int64_t>(of.activation);
  }
};

/// Gradients, contiguous: of_added may be undefined.
struct Gradients {
  at::Tensor x, added, weight, bias;
};

gpu::NormBackward backward_pass(gpu::Maps const& maps, Saved const& saved, at::Tensor const& of_y,
                                Gradients const& into, Activation activation) {
  return {
      .maps = maps,
      .x = saved.x.data_ptr(),
      .y = saved.y.defined() ? saved.y.data_ptr() : nullptr,
      .of_y = of_y.data_ptr(),
      .of_x = into.x.data_ptr(),
      .of_added = into.added.defined() ? into.added.data_ptr() : nullptr,
      .weight = saved.weight.data_ptr<float>(),
      .bias = saved.bias.data_ptr<float>(),
      .mean = saved.mean.data_ptr<float>(),
      .inverse_deviation = saved.inverse_deviation.data_ptr<float>(),
      .of_weight = into.weight.data_ptr<float>(),
      .of_bias = into.bias.data_ptr<float>(),
      .activation = activation,
  };
}

Activation activation_of(AutogradContext& context) {
  return static_cast<Activation>(context.saved_data["activation"].toInt());
}

class Fused : public torch::autograd::Function<Fused> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& x,
                            std::optional<at::Tensor> const& added, at::Tensor const& weight,
                            at::Tensor const&, BatchNormOf const& of, NormKernels on_cpu) {
    Statistics const statistics(weight);
    auto const y = compute(x, added.value_or(at::Tensor()), of, on_cpu, statistics);
    bool const needs_y = added && of.activation != Activation::none;
    Saved::save(*context, x, of, statistics, needs_y ? y : at::Tensor());
    context->saved_data["added"] = added.has_value();
    context->saved_data["kernels"] = static_cast<std::int64_t>(on_cpu);
    return y;
  }

  static at::Tensor compute(at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of,
                            NormKernels on_cpu, Statistics const& statistics) {
    auto const y = at::empty_like(x);
    run(forward_pass(*maps_of(x), x, added, y, of, statistics), x, on_cpu);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    Saved const saved(*context);
    auto const of_y = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    bool const added = context->saved_data["added"].toBool();
    Gradients const into{at::empty_like(saved.x), added ? at::empty_like(saved.x) : at::Tensor(),
                         at::empty_like(saved.weight), at::empty_like(saved.bias)};
    run(backward_pass(*maps_of(saved.x), saved, of_y, into, activation_of(*context)), saved.x,
        static_cast<NormKernels>(context->saved_data["kernels"].toInt()));
    return {into.x, into.added, into.weight, into.bias, at::Tensor(), at::Tensor()};
  }
};

/// On the CPU. The input is a result, too.
class WithInput : public torch::autograd::Function<WithInput> {
 public:
  static variable_list forward(AutogradContext* context, at::Tensor const& x,
                               at::Tensor const& weight, at::Tensor const&, BatchNormOf const& of) {
    auto const [maps, rows, moments] = *growing_maps_of(x);
    Statistics const statistics(weight);
    auto const y = at::empty(x.sizes(), x.options(), at::MemoryFormat::ChannelsLast);
    norm_on_cpu(forward_pass(maps, x, {}, y, of, statistics), rows.stride, moments);
    Saved::save(*context, x, of, statistics, {});
    return {y, x};
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    Saved const saved(*context);
    auto const of_y = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    auto further = gradients[1];
    if (!row_stride_of(further)) further = further.clone(at::MemoryFormat::ChannelsLast);
    Gradients const into{
        at::empty_like(of_y), {}, at::empty_like(saved.weight), at::empty_like(saved.bias)};
    auto const [maps, rows, _] = *growing_maps_of(saved.x);
    norm_on_cpu(backward_pass(maps, saved, of_y, into, activation_of(*context)), rows.stride,
                {further.data_ptr<float>(), *row_stride_of(further)});
    return {into.x, into.weight, into.bias, at::Tensor()};
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
  return Fused::compute(x, added, of, on_cpu, Statistics(of.weight));
}

NormedAndInput batch_norm_and_input(at::Tensor const& x, BatchNormOf const& of) {
  auto const results = WithInput::apply(x, of.weight, of.bias, of);
  return {results[0], results[1]};
}

}  // namespace stratagem
