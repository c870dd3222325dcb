#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "compress/compression.hpp"
#include "strategy/plan.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

// What strategies have in common that compress gradients. A worker's gradient plus its residual is
// coded and sent; what is read is added up in rank order. Where that is a code of blocks, the sum
// plus a residual of its own is coded and sent, and what is read of that is applied, see SumCode.

/// Whether the sum of the gradients is written in blocks, too: where it travels to all, but not
/// where whoever adds it up also applies it.
enum class SumCode { coded, plain };

/// What follows for a plan of `workers` workers: nothing without a code. Error(usage) for what
/// cannot be together.
void plan_compression(Compression const& compression, SumCode of_sum, PlanInput const& input,
                      StrategyPlan& plan);

/// The same where passes run with what is read of parameters in `code`.
void plan_parameter_compression(Code code, PlanInput const& input, StrategyPlan& plan);

/// Error(usage) for a code of another kind, beside a strategy that sends ranges of the flat space.
void refuse_codes_without_blocks(Compression const& compression, std::string_view strategy);

/// What updates with the sums: without momentum where workers have applied it to their own
/// gradients.
OptimizerConfig optimizer_of(Compression const& compression, OptimizerConfig optimizer);

/// AgreedError(environment): codes are made on CPUs.
void refuse_codes_on_gpu(gpu::Device const& device);

/// A state that each of `workers` workers has of its own, of which this rank holds that of worker
/// `number`, `own`, in the flat space; nothing where that is none.
std::vector<ParameterState> of_each_worker(std::string_view kind, ParameterLayout const& layout,
                                           at::Tensor const& own, int workers, int number);
/// The same where each rank is a worker.
std::vector<ParameterState> of_each_worker(std::string_view kind, ParameterLayout const& layout,
                                           at::Tensor const& own, Communicator const& communicator);
/// The same of one worker, who is here; or of all.
ParameterState of_worker(std::string_view kind, ParameterLayout const& layout,
                         at::Tensor const& own, int worker);

/// `values` <- 0 where the elements `range` of the flat space belong to no parameter: a code may
/// have made something else of them, which would count in the next code of their block.
void clear_padding(ParameterLayout const& layout, FlatRange range, std::span<float> values);

/// The numbers of a fp32 CPU tensor, or of no tensor.
std::span<float> numbers_of(at::Tensor const& tensor);

}  // namespace stratagem
