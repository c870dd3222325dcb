#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "params/parameter_layout.hpp"

namespace stratagem {

/// Element i (in logical order, counted in the whole tensor of which a spec may be a part) is a
/// pure function of (seed, name, i): any rank can make any part of any parameter alone. `view`: the
/// parameter's tensor, of any floating type, strides and device.
void initialise(at::Tensor const& view, ParameterSpec const& spec, std::uint64_t seed);

/// All parameters of `flat`; the padding between them becomes 0.
void initialise(at::Tensor const& flat, ParameterLayout const& layout, std::uint64_t seed);

}  // namespace stratagem
