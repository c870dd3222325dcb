#include "strategy/plan.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "strategy/replica.hpp"

namespace stratagem {
namespace {

std::int64_t size_of(at::ScalarType type) {
  return static_cast<std::int64_t>(c10::elementSize(type));
}

std::int64_t buffer_bytes(Model const& model, Precision precision) {
  std::int64_t bytes = 0;
  for (auto const& block : model.blocks)
    for (auto const& spec : block->declaration().buffers()) {
      std::int64_t numel = 1;
      for (auto extent : spec.shape) numel *= extent;
      bytes += numel * size_of(spec.type == at::kFloat ? master_type(precision) : spec.type);
    }
  return bytes;
}

/// Of a rank that holds everything.
gpu::MemoryUse replica_memory(ParameterLayout const& layout, Model const& model,
                              OptimizerConfig const& optimizer, Precision precision) {
  auto const master = size_of(master_type(precision)), compute = size_of(compute_type(precision));
  gpu::MemoryUse use;
  use[gpu::MemoryCategory::parameters] =
      layout.size() * (master + (compute < master ? compute : 0));
  use[gpu::MemoryCategory::gradients] = layout.size() * master;
  use[gpu::MemoryCategory::optimizer] = optimizer.momentum != 0 ? layout.size() * master : 0;
  use[gpu::MemoryCategory::buffers] = buffer_bytes(model, precision);
  return use;
}

void plan(SerialConfig const& config, ParameterLayout const&, int ranks, StrategyPlan& plan) {
  if (ranks != 1)
    throw Error(ExitCode::usage, str("strategy serial on ", ranks, " ranks"), "it is one process",
                "start one rank, or take strategy ddp");
  plan.workers = config.emulate_ranks;
  plan.micro_batches = config.micro_batches;
  if (config.emulate_ranks == 1) return;
  plan.memory[gpu::MemoryCategory::gradients] *= 2;
  plan.memory[gpu::MemoryCategory::buffers] *= config.emulate_ranks;
}

void plan(DdpConfig const& config, ParameterLayout const& layout, int ranks, StrategyPlan& plan) {
  plan.workers = ranks;
  plan.micro_batches = config.micro_batches;
  plan.buckets = plan_buckets(config, layout, plan.element_size);
  plan.memory[gpu::MemoryCategory::gradients] += control_room * plan.element_size;
  for (auto const& bucket : plan.buckets.buckets) {
    auto const elements = bucket.range.size() + (bucket.range.begin == 0 ? control_room : 0);
    plan.bytes_sent_per_step += 2 * (ranks - 1) * elements * plan.element_size / ranks;
  }
}

}  // namespace

BucketPlan plan_buckets(DdpConfig const& config, ParameterLayout const& layout,
                        std::int64_t element_size) {
  auto const bytes = static_cast<std::int64_t>(config.bucket_mb * (1 << 20));
  return make_bucket_plan(layout, bytes, element_size);
}

StrategyPlan plan_strategy(StrategyConfig const& config, Model const& model,
                           OptimizerConfig const& optimizer, PrecisionConfig const& precision,
                           int ranks) {
  auto const layout = make_layout(model);
  StrategyPlan result;
  result.element_size = size_of(master_type(precision.compute));
  result.memory = replica_memory(layout, model, optimizer, precision.compute);
  std::visit([&](auto const& chosen) { plan(chosen, layout, ranks, result); }, config);
  result.hash = Hash().add(layout.hash()).add(result.buckets.hash()).value();
  return result;
}

}  // namespace stratagem
