#pragma once

#include <span>

#include <ATen/core/Tensor.h>

#include "compress/compression.hpp"
#include "strategy/plan.hpp"

namespace stratagem {

// What strategies have in common that compress gradients. A worker's gradient plus its residual is
// coded and sent; what is read is added up in rank order; the sum plus a residual of its own is
// coded and sent, and what is read of that is applied.

/// What follows for a plan of `workers` workers: nothing without a code. Error(usage) for what
/// cannot be together.
void plan_compression(Compression const& compression, PlanInput const& input, StrategyPlan& plan);

/// `values` <- 0 where the elements `range` of the flat space belong to no parameter: a code may
/// have made something else of them, which would count in the next code of their block.
void clear_padding(ParameterLayout const& layout, FlatRange range, std::span<float> values);

/// The numbers of a fp32 CPU tensor, or of no tensor.
std::span<float> numbers_of(at::Tensor const& tensor);

}  // namespace stratagem
