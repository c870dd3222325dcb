#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem {

/// ReLU(y + bias) in place of y [n, channels, height, width], which nothing else may need. On a GPU
/// in one kernel, and in one or two in the backward pass, if `fused` and the maps suit.
at::Tensor bias_relu(at::Tensor y, at::Tensor const& bias, bool fused);

/// The same by the GPU's kernels or what the host has in their place (see gpu/layers/bias_relu).
/// Needs maps that suit.
at::Tensor fused_bias_relu(at::Tensor const& y, at::Tensor const& bias);

}  // namespace stratagem
