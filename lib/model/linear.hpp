#pragma once

#include <ATen/core/Tensor.h>

#include "model/block.hpp"

namespace stratagem {

/// How a weight lies in memory: [out, in] as PyTorch's linear layers have it, or [in, out].
enum class WeightLayout { out_in, in_out };

/// x [..., in] -> [..., out]: its product with a parameter of the frame, plus another one (-1:
/// none). In the backward pass gradients are computed where they are wanted (see GradientPlaces),
/// the weight's also in fp32 from 16-bit factors on a GPU; bits are otherwise LibTorch's.
at::Tensor linear(at::Tensor const& x, Frame const& frame, int weight, int bias,
                  WeightLayout layout = WeightLayout::out_in);

}  // namespace stratagem
