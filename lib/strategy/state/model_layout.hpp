#pragma once

#include <cstdint>

#include <c10/core/ScalarType.h>

#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "params/parameter_layout.hpp"

namespace stratagem {

/// The floating type that activations have.
at::ScalarType compute_type(Precision precision);
/// The type of the parameters that the optimizer updates: fp32, or fp64 when computing in fp64.
at::ScalarType master_type(Precision precision);

/// Bytes of one element.
std::int64_t size_of(at::ScalarType type);

ParameterLayout make_layout(Model const& model);
/// Of the last of its blocks: one block of the model alone. What that borrows is in a block before.
ParameterLayout layout_of_block(Model const& model, int block);

}  // namespace stratagem
