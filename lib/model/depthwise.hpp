#pragma once

#include <ATen/core/Tensor.h>

#include "model/taps.hpp"

namespace stratagem {

/// A convolution of each channel by itself, on the CPU, in fp32 or fp64. Maps are [n, pixels *
/// channels]; `weight` [channels, 1, k, k]. Adds to `y`.
void depthwise(TapPlan const& plan, at::Tensor const& x, at::Tensor const& weight,
               at::Tensor const& y);

/// Gradients from that of `y`: adds to `into_x`, overwrites `into_weight`; either may be undefined.
void depthwise_backward(TapPlan const& plan, at::Tensor const& x, at::Tensor const& weight,
                        at::Tensor const& y, at::Tensor const& into_x,
                        at::Tensor const& into_weight);

}  // namespace stratagem
