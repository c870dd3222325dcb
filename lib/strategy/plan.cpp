#include "strategy/plan.hpp"

#include <numeric>

#include "base/arithmetic.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "optim/exact_square_sum.hpp"
#include "strategy/state/buffers.hpp"
#include "strategy/control.hpp"
#include "strategy/model_layout.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/update.hpp"

namespace stratagem {
namespace {

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

/// What plans depend on beside their own options.
struct PlanInput {
  ParameterLayout const& layout;
  OptimizerConfig const& optimizer;
  PrecisionConfig const& precision;
};

/// Of each rank, on average.
std::int64_t all_reduce_bytes(std::int64_t bytes, int ranks) {
  return 2 * (ranks - 1) * bytes / ranks;
}

void plan(SerialConfig const& config, PlanInput const&, int ranks, StrategyPlan& plan) {
  if (ranks != 1)
    throw Error(ExitCode::usage, str("strategy serial on ", ranks, " ranks"), "it is one process",
                "start one rank, or take strategy ddp");
  plan.workers = config.emulate_ranks;
  plan.micro_batches = config.micro_batches;
  plan.memory[gpu::MemoryCategory::gradients] *=
      1 + (config.emulate_ranks > 1 ? 1 : 0) + (config.sums_micro_batches() ? 1 : 0);
  plan.memory[gpu::MemoryCategory::buffers] *= config.emulate_ranks;
}

void plan(DdpConfig const& config, PlanInput const& input, int ranks, StrategyPlan& plan) {
  plan.workers = ranks;
  plan.micro_batches = config.micro_batches;
  plan.buckets = plan_buckets(config, input.layout, plan.element_size);
  plan.memory[gpu::MemoryCategory::gradients] += control_room * plan.element_size;
  for (auto const& bucket : plan.buckets.buckets) {
    auto const elements = bucket.range.size() + (bucket.range.begin == 0 ? control_room : 0);
    plan.bytes_sent_per_step += all_reduce_bytes(elements * plan.element_size, ranks);
  }
}

void plan(FsdpConfig const& config, PlanInput const& input, int ranks, StrategyPlan& plan) {
  auto const buffers = plan.memory[gpu::MemoryCategory::buffers];
  auto const fsdp =
      plan_fsdp(config, input.layout, input.optimizer, input.precision.compute, ranks, buffers);
  plan.workers = ranks;
  plan.micro_batches = config.micro_batches;
  plan.memory = fsdp.memory(input.optimizer.momentum != 0);
  plan.memory[gpu::MemoryCategory::buffers] = buffers;
  plan.bytes_sent_per_step = fsdp.gathered_bytes_sent() + fsdp.reduced_bytes_sent() +
                             all_reduce_bytes(control_room * plan.element_size, ranks);
  if (input.optimizer.clip_norm > 0 || scales_loss(input.precision))
    plan.bytes_sent_per_step += all_reduce_bytes(ExactSquareSum::bytes, ranks);
  plan.fsdp = fsdp;
}

void plan(PsConfig const& config, PlanInput const& input, int ranks, StrategyPlan& plan) {
  plan.servers = plan_servers(config, input.layout, ranks, plan.element_size);
  plan.roles = plan.servers->roles;
  plan.holders = {plan.roles.workers.front()};
  plan.workers = static_cast<int>(plan.roles.workers.size());
  auto const policy = policy_of(config, plan.workers);
  check_ps(config, input.optimizer, plan.workers);
  plan.synchronous = !policy.asynchronous();
  plan.pushes = policy.pushes;
  plan.micro_batches = config.micro_batches;
  plan.memory[gpu::MemoryCategory::optimizer] = 0;
  for (auto const shard : plan.servers->shards) {
    auto use = server_memory(policy, input.optimizer, shard, plan.workers, plan.element_size);
    plan.server_bytes.push_back(use.total());
    if (use.total() > plan.server_memory.total()) plan.server_memory = use;
  }
  plan.bytes_sent_per_step = input.layout.size() * plan.element_size;
}

}  // namespace

BucketPlan plan_buckets(DdpConfig const& config, ParameterLayout const& layout,
                        std::int64_t element_size) {
  auto const bytes = saturated(config.bucket_mb * (1 << 20));
  return make_bucket_plan(layout, bytes, element_size);
}

std::optional<RankSlice> StrategyPlan::slice_of(int rank) const {
  int const worker = roles.worker_of(rank);
  if (worker < 0) return std::nullopt;
  return RankSlice{worker, static_cast<int>(roles.workers.size())};
}

bool StrategyPlan::is_vital(int rank) const {
  return synchronous || roles.worker_of(rank) < 0;
}

std::uint64_t StrategyPlan::hash() const {
  Hash hash;
  for (auto const& [part, value] : hashes) hash.add(part).add(value);
  return hash.value();
}

StrategyPlan plan_strategy(StrategyConfig const& config, Model const& model,
                           OptimizerConfig const& optimizer, PrecisionConfig const& precision,
                           int ranks) {
  auto const layout = make_layout(model);
  StrategyPlan result;
  result.element_size = size_of(master_type(precision.compute));
  result.memory = replica_memory(layout, model, optimizer, precision.compute);
  result.roles.workers.resize(static_cast<std::size_t>(ranks));
  std::iota(result.roles.workers.begin(), result.roles.workers.end(), 0);
  result.holders = result.roles.workers;
  PlanInput const input{layout, optimizer, precision};
  std::visit([&](auto const& chosen) { plan(chosen, input, ranks, result); }, config);
  result.hashes = {{"parameters", layout.hash()}};
  if (!result.buckets.buckets.empty()) result.hashes.emplace_back("buckets", result.buckets.hash());
  if (result.servers) result.hashes.emplace_back("servers", result.servers->hash());
  if (result.fsdp) {
    result.hashes.emplace_back("shards", result.fsdp->shards.hash());
    result.hashes.emplace_back("slots and order of gathering", result.fsdp->hash());
  }
  return result;
}

}  // namespace stratagem
