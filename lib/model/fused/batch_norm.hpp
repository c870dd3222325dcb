#pragma once

#include <ATen/core/Tensor.h>

#include "gpu/layers/activation.hpp"

namespace stratagem {

/// What BatchNorm of maps needs beside them. Tensors: fp32 [channels].
struct BatchNormOf {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var;  ///< updated in training
  double eps, momentum;
  Activation activation;
};

/// activation(BatchNorm(x) + added). x, added: [n, channels, height, width]; added may be
/// undefined. In training, if `fused` and the maps suit, in one or two kernels on a GPU and two
/// passes over the maps on a CPU; so is the backward pass.
at::Tensor batch_norm(at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of,
                      bool training, bool fused);

/// Its result and x itself, for whatever else reads x: their gradients are added up in the backward
/// pass of BatchNorm. In training, of maps that can grow (growing_maps.hpp).
struct NormedAndInput {
  at::Tensor normed, x;
};
NormedAndInput batch_norm_and_input(at::Tensor const& x, BatchNormOf const& of);

/// Of a CPU: its own, or twins of a GPU's, which have those bits and take longer.
enum class NormKernels { own, twins };

/// The same in training. Needs maps that suit.
at::Tensor fused_batch_norm(at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of,
                            NormKernels on_cpu = NormKernels::own);

}  // namespace stratagem
