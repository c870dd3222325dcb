#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "params/parameter_layout.hpp"

namespace stratagem {

/// Element i is a pure function of (seed, name, i), so any rank can make any part of any parameter
/// by itself. i is the logical index in the whole tensor, even if the spec is a part of it. `view`:
/// the parameter's tensor, of any floating type, strides and device.
void initialise(at::Tensor const& view, ParameterSpec const& spec, std::uint64_t seed);

/// Initialises all parameters in `flat`; the padding between them becomes 0.
void initialise(at::Tensor const& flat, ParameterLayout const& layout, std::uint64_t seed);

}  // namespace stratagem
