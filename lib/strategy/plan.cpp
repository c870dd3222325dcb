#include "strategy/plan.hpp"

#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "strategy/state/buffers.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {

std::uint64_t StrategyPlan::hash() const {
  Hash hash;
  for (auto const& [part, value] : hashes) hash.add(part).add(value);
  return hash.value();
}

int StrategyPlan::awake_ranks() const {
  return placement.workers() + (synchronous() ? 0 : placement.servers());
}

PlanInput plan_input(Model const& model, OptimizerConfig const& optimizer,
                     PrecisionConfig const& precision, int ranks) {
  return {model, optimizer, precision, ranks, make_layout(model)};
}

StrategyPlan plan_of_replicas(PlanInput const& input) {
  auto const compute = size_of(compute_type(input.precision.compute));
  auto const size = input.layout.size();
  StrategyPlan plan{.placement = Placement(input.ranks), .shares = {.workers = input.ranks}};
  auto const master = plan.element_size = size_of(master_type(input.precision.compute));
  plan.saved.holders = plan.placement.worker_ranks();
  plan.memory[gpu::MemoryCategory::parameters] = size * (master + (compute < master ? compute : 0));
  plan.memory[gpu::MemoryCategory::gradients] = size * master;
  plan.memory[gpu::MemoryCategory::optimizer] = state_count(input.optimizer) * size * master;
  plan.memory[gpu::MemoryCategory::buffers] = buffer_bytes(input.model, input.precision.compute);
  plan.hashes = {{"parameters", input.layout.hash()}};
  return plan;
}

std::string order_of_sums(int micro_batches, Accumulate accumulate, int groups, int workers) {
  bool const of_one = groups > 1 && groups == workers;
  bool const sharded = accumulate == Accumulate::sharded && micro_batches > 1 && !of_one;
  return str(micro_batches, " micro-batches", sharded ? ", summed over workers first" : "",
             groups > 1 && !of_one ? str(", in ", groups, " groups of workers") : "");
}

std::int64_t all_reduce_bytes(std::int64_t bytes, int ranks) {
  return 2 * (ranks - 1) * bytes / ranks;
}

std::string divisors_text(int number) {
  std::vector<std::string> divisors;
  for (int divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0) divisors.push_back(std::to_string(divisor));
  return join(divisors, ", ");
}

std::string block_range(int first, int last, Model const& model) {
  auto const name = [&](int block) {
    return model.blocks[static_cast<std::size_t>(block)]->name();
  };
  return first == last ? name(first) : name(first) + " .. " + name(last);
}

}  // namespace stratagem
