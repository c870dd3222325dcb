#include "strategy/serial/serial_plan.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/codes/compressed.hpp"
#include "strategy/codes/low_rank_gradients.hpp"
#include "strategy/codes/sparse_gradients.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/serial/serial.hpp"
#include "strategy/serial/worker_sums.hpp"
#include "strategy/timing/lanes.hpp"

namespace stratagem {
namespace {

class PlannedSerial final : public PlannedStrategy {
 public:
  explicit PlannedSerial(SerialConfig const& config) : config_(config) {}

  Member make(StrategyParts const& parts) const override {
    return {.strategy = std::make_unique<Serial>(config_, parts)};
  }

  StepTime time(StepParts const& parts) const override {
    auto const found = steady(parts, [&](Lanes& lanes) {
      auto const pass = parts.costs.forward_s + parts.costs.backward_s;
      lanes.compute(config_.emulate_ranks * config_.micro_batches * pass);
      lanes.compute(coding_s(parts));
      auto const speed = parts.costs.codec({.code = config_.parameter_compression});
      lanes.compute((speed.encode + speed.decode) * 4.0 * static_cast<double>(parts.layout.size()));
      lanes.compute(parts.costs.optimizer_s);
    });
    return with_cores(found.path_s, found.compute_s, 0, 1, 1, parts.costs);
  }

 private:
  /// Of every worker's gradients, and maybe of their sum.
  double coding_s(StepParts const& parts) const {
    auto const& code = config_.compression;
    auto const speed = parts.costs.codec(code);
    auto const& layout = parts.layout;
    auto const bytes_of = [](std::int64_t elements) { return 4.0 * static_cast<double>(elements); };
    auto const bytes = bytes_of(layout.size());
    auto const workers = config_.emulate_ranks;
    if (code.sparse()) {
      auto const taken = sparse_message(code, layout, {0, layout.size()}).count;
      return workers * (speed.encode * bytes + speed.decode_and_add * bytes_of(taken)) +
             speed.decode * bytes;
    }
    if (code.low_rank()) {
      auto const plan = low_rank_plan(code.matrix_rank, layout, {0, layout.size()});
      return (workers * speed.encode + speed.decode) * bytes_of(plan.matrix_elements()) +
             speed.decode_and_add * bytes_of(plan.first);
    }
    return (workers + (config_.compressed_sums ? 1 : 0)) * bytes * (speed.encode + speed.decode);
  }

  SerialConfig config_;
};

void check_groups(SerialConfig const& config) {
  if (config.emulate_ranks % config.groups != 0)
    throw Error(
        ExitCode::usage,
        str("strategy.groups: ", config.groups, " groups of ", config.emulate_ranks, " workers"),
        "all groups have equally many workers",
        "take one of " + divisors_text(config.emulate_ranks));
  if (config.groups > 1 && config.compression.on())
    throw Error(ExitCode::usage, "strategy.groups together with strategy.compression",
                "gradients travel in a code among all ranks at once", "leave one of them out");
}

}  // namespace

StrategyPlan plan_of(SerialConfig const& config, PlanInput const& input) {
  if (input.ranks != 1)
    throw Error(ExitCode::usage, str("strategy serial on ", input.ranks, " ranks"),
                "it is one process", "start one rank, or take strategy ddp");
  auto plan = plan_of_replicas(input);
  plan.shares.workers = config.emulate_ranks;
  plan.shares.micro_batches = config.micro_batches;
  check_groups(config);
  plan.memory[gpu::MemoryCategory::gradients] *= 1 + (config.workers_of_group() > 1 ? 1 : 0) +
                                                 (config.groups > 1 ? 1 : 0) +
                                                 (config.sums_micro_batches() ? 1 : 0);
  plan.memory[gpu::MemoryCategory::buffers] *= config.emulate_ranks;
  plan.numbers.order_of_sums =
      order_of_sums(config.micro_batches, config.accumulate, config.groups, config.emulate_ranks);
  if (config.compression.on() && config.accumulate == Accumulate::sharded)
    throw Error(ExitCode::usage, "strategy.compression together with strategy.accumulate: sharded",
                "strategies that code gradients add up a worker's own first",
                "take accumulate: unsharded");
  if (!config.compression.on() && !config.compressed_sums)
    throw Error(ExitCode::usage, "strategy.compressed_sums: false without strategy.compression",
                "gradients are not coded", "leave it out, or choose a code");
  if (!config.compression.in_blocks() && config.compression.on() && !config.compressed_sums)
    throw Error(ExitCode::usage,
                str("strategy.compressed_sums: false together with strategy.compression: ",
                    name_of(config.compression.code)),
                "the sum of gradients is written in no code", "leave it out");
  plan_compression(config.compression, config.compressed_sums ? SumCode::coded : SumCode::plain,
                   input, plan);
  plan_parameter_compression(config.parameter_compression, input, plan);
  if (config.parameter_compression != Code::none &&
      compute_type(input.precision.compute) == master_type(input.precision.compute))
    plan.memory[gpu::MemoryCategory::parameters] += input.layout.size() * plan.element_size;
  plan.memory[gpu::MemoryCategory::gradients] += bytes_held_by_sums(config, input.layout);
  plan.steps_can_be_kept = !config.compression.on() && config.parameter_compression == Code::none &&
                           !input.model.waits_for_device;
  plan.traffic.operations = {BenchOperation::all_reduce};
  plan.strategy = std::make_shared<PlannedSerial>(config);
  return plan;
}

}  // namespace stratagem
