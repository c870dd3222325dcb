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
/// undefined. In training on a GPU in one or two kernels, and as many in the backward pass, if
/// `fused` and the maps suit.
at::Tensor batch_norm(at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of,
                      bool training, bool fused);

/// The same in training, by the GPU's kernels or what the host has in their place (see
/// gpu/layers/batch_norm). Needs maps that suit.
at::Tensor fused_batch_norm(at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of);

}  // namespace stratagem
