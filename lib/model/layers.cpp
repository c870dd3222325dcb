#include "model/layers.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/arithmetic.hpp"
#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "gpu/device.hpp"
#include "gpu/keep_mask.hpp"
#include "model/convolution.hpp"
#include "model/fused/batch_norm.hpp"
#include "model/fused/bias_relu.hpp"
#include "model/fused/layer_norm.hpp"
#include "model/linear.hpp"

namespace stratagem {
namespace {

at::Tensor const& parameter(Frame const& frame, int index) {
  return frame.parameters[static_cast<std::size_t>(index)];
}
at::Tensor const& buffer(Frame const& frame, int index) {
  return frame.buffers[static_cast<std::size_t>(index)];
}

Window window_of(Conv2d::Shape const& shape) {
  return {shape.stride, shape.padding, shape.groups};
}

BufferSpec statistic(std::string name, std::int64_t channels, double value) {
  return {.name = std::move(name), .shape = {channels}, .value = value};
}

bool drops(Context const& context, double p) {
  return context.training && context.dropout && p > 0;
}

void fill_sample(gpu::KeepMask const& keep, std::int64_t sample, float* values) {
  auto const first = keep.first + (keep.later == nullptr ? 0 : *keep.later);
  auto const sequence = first + static_cast<std::uint64_t>(sample);
  float* const own = values + sample * keep.count;
  for (std::int64_t element = 0; element < keep.count; element += 4) {
    auto const words = keep.random.block(static_cast<std::uint64_t>(element / 4), sequence);
    auto const here = std::min<std::int64_t>(4, keep.count - element);
    for (std::int64_t i = 0; i < here; ++i)
      own[element + i] = to_unit_float(words[static_cast<std::size_t>(i)]) >= keep.p ? 1.0F : 0.0F;
  }
}

/// x times its mask, which has `count` elements per sample and is broadcast to the shape of x.
at::Tensor masked(at::Tensor const& x, at::Tensor const& mask, at::IntArrayRef shape, double p) {
  return x * mask.to(x.scalar_type()).div_(1 - p).view(shape);
}

}  // namespace

Conv2d::Conv2d(Declaration& declare, std::string const& prefix, Shape const& shape,
               Initialiser weight_init, Initialiser bias_init)
    : shape(shape),
      weight(declare.parameter({prefix + ".weight",
                                {shape.out, shape.in / shape.groups, shape.kernel, shape.kernel},
                                weight_init})) {
  if (shape.bias) bias = declare.parameter({prefix + ".bias", {shape.out}, bias_init});
}

at::Tensor Conv2d::operator()(at::Tensor const& x, Frame const& frame) const {
  std::optional<at::Tensor> of_bias;
  if (bias >= 0) of_bias = parameter(frame, bias);
  return convolve(x, parameter(frame, weight), of_bias, window_of(shape),
                  frame.context.knows_small_maps(), {frame.places, weight, bias});
}

/// On a GPU, LibTorch adds the bias in a kernel of its own.
at::Tensor Conv2d::with_relu(at::Tensor const& x, Frame const& frame) const {
  if (bias < 0 || !x.is_cuda()) return (*this)(x, frame).relu_();
  auto const y = convolve(x, parameter(frame, weight), std::nullopt, window_of(shape),
                          frame.context.knows_small_maps(), {frame.places, weight});
  return bias_relu(y, parameter(frame, bias), frame.context.fused);
}

Linear::Linear(Declaration& declare, std::string const& prefix, Shape const& shape,
               Initialiser weight_init, Initialiser bias_init)
    : weight(declare.parameter({.name = prefix + ".weight",
                                .shape = {shape.out, shape.in},
                                .initialiser = weight_init,
                                .row_begin = shape.row_begin,
                                .total_rows = shape.total_rows})),
      bias(declare.parameter({.name = prefix + ".bias",
                              .shape = {shape.out},
                              .initialiser = bias_init,
                              .row_begin = shape.row_begin,
                              .total_rows = shape.total_rows})) {}

at::Tensor Linear::operator()(at::Tensor const& x, Frame const& frame) const {
  return linear(x, frame, weight, bias);
}

BatchNorm2d::BatchNorm2d(Declaration& declare, std::string const& prefix, std::int64_t channels,
                         double eps, double momentum)
    : eps(eps),
      momentum(momentum),
      weight(declare.parameter({prefix + ".weight", {channels}, Initialiser::constant(1), true})),
      bias(declare.parameter({prefix + ".bias", {channels}, Initialiser::constant(0), true})),
      running_mean(declare.buffer(statistic(prefix + ".running_mean", channels, 0))),
      running_var(declare.buffer(statistic(prefix + ".running_var", channels, 1))),
      num_batches_tracked(
          declare.buffer({prefix + ".num_batches_tracked", {}, at::kLong, 0, true})) {
  declare.mix_samples();
}

at::Tensor BatchNorm2d::operator()(at::Tensor const& x, Frame const& frame, Activation activation,
                                   at::Tensor const& added) const {
  return batch_norm(x, added, of(x, frame, activation), frame.context.training,
                    frame.context.fused);
}

NormedAndInput BatchNorm2d::with_input(at::Tensor const& x, Frame const& frame,
                                       Activation activation) const {
  return batch_norm_and_input(x, of(x, frame, activation));
}

BatchNormOf BatchNorm2d::of(at::Tensor const& x, Frame const& frame, Activation activation) const {
  if (frame.context.training && x.numel() == x.size(1))
    throw Error(ExitCode::usage, "BatchNorm cannot train on one value per channel",
                "one sample has reached a map of 1x1 pixels, whose variance is unknown",
                "raise the batch of each worker to 2 or more, or data.input_size");
  return {.weight = parameter(frame, weight),
          .bias = parameter(frame, bias),
          .running_mean = buffer(frame, running_mean),
          .running_var = buffer(frame, running_var),
          .eps = eps,
          .momentum = momentum,
          .activation = activation};
}

LayerNorm::LayerNorm(Declaration& declare, std::string const& prefix, std::int64_t channels,
                     double eps)
    : eps(eps),
      weight(declare.parameter({prefix + ".weight", {channels}, Initialiser::constant(1), true})),
      bias(declare.parameter({prefix + ".bias", {channels}, Initialiser::constant(0), true})) {}

at::Tensor LayerNorm::operator()(at::Tensor const& x, Frame const& frame) const {
  return layer_norm(x, parameter(frame, weight), parameter(frame, bias), eps, frame.context.fused);
}

at::Tensor Dropout::operator()(at::Tensor const& x, Frame const& frame) const {
  if (!drops(frame.context, p)) return x;
  auto const samples = x.size(0);
  auto const count = x.numel() / samples;
  return masked(x, keep_mask(frame.context, name, samples, count, p, x.device()), x.sizes(), p);
}

at::Tensor StochasticDepth::operator()(at::Tensor const& x, Frame const& frame) const {
  if (!drops(frame.context, p)) return x;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  return masked(x, keep_mask(frame.context, name, x.size(0), 1, p, x.device()), shape, p);
}

at::Tensor keep_mask(Context const& context, std::string const& name, std::int64_t samples,
                     std::int64_t count, double p, at::Device device) {
  expects(samples > 0 && count > 0, "a mask has elements");
  auto const mask = at::empty({samples, count}, at::TensorOptions().device(device));
  auto* const values = mask.data_ptr<float>();
  auto const slot = static_cast<std::uint64_t>(context.first_slot);
  gpu::KeepMask const keep{.random = CounterRandom(context.seed, "dropout/" + name),
                           .first = static_cast<std::uint64_t>(context.step) << 32 | slot,
                           .samples = samples,
                           .count = count,
                           .p = p,
                           .later = context.later};
  if (device.is_cuda()) {
    gpu::fill(keep, values, gpu::Device::of(device));
    return mask;
  }
  auto const grain = ceil_div(1 << 14, count);
  at::parallel_for(0, samples, grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto sample = begin; sample < end; ++sample) fill_sample(keep, sample, values);
  });
  return mask;
}

Initialiser default_uniform(std::int64_t fan_in) {
  return Initialiser::uniform(1 / std::sqrt(static_cast<double>(fan_in)));
}

Initialiser kaiming_normal(std::int64_t fan) {
  return Initialiser::normal(std::sqrt(2 / static_cast<double>(fan)));
}

}  // namespace stratagem
