#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem {

/// x [..., channels], normalised over its last dimension in fp32; weight, bias: fp32 [channels].
/// The result has the type of x. 16-bit floats on a GPU are not converted in passes of their own,
/// if `fused` and x suits.
at::Tensor layer_norm(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& bias,
                      double eps, bool fused);

/// The same by the GPU's kernels or what the host has in their place (see gpu/layers/layer_norm).
/// Needs whole vectors.
at::Tensor fused_layer_norm(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& bias,
                            double eps);

}  // namespace stratagem
