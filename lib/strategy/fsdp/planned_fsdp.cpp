#include <algorithm>
#include <deque>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/console/table.hpp"
#include "base/text.hpp"
#include "optim/exact_square_sum.hpp"
#include "strategy/codes/compressed.hpp"
#include "strategy/data_parallel/data_parallel_worker.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"
#include "strategy/fsdp/sharded.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/state/model_layout.hpp"
#include "strategy/timing/lanes.hpp"

namespace stratagem {
namespace {

/// A step of FSDP on lanes, in the order of DataParallelWorker and Sharded: gathers go ahead of the
/// blocks as far as the plan says; each unit's reduce-scatter begins when its blocks are back, and
/// is awaited before its shard is updated or another unit needs its slot. With replicas it is
/// awaited before the next one begins, and an all-reduce of the shard follows.
class FsdpStep {
 public:
  FsdpStep(FsdpPlan const& plan, StepParts const& parts)
      : plan_(plan),
        parts_(parts),
        speed_(parts.costs.codec(plan.compression)),
        parameter_speed_(parts.costs.codec({.code = plan.parameter_compression})),
        gathered_(static_cast<std::size_t>(plan_.units())),
        over_replicas_(static_cast<std::size_t>(plan_.units())) {}

  void run(Lanes& lanes) {
    for (int micro = 0; micro < plan_.micro_batches; ++micro) {
      forward(lanes);
      backward(lanes, micro + 1 == plan_.micro_batches);
    }
    for (int unit = plan_.units() - 1; unit >= 0; --unit) {
      finish(unit, lanes);
      for (auto const& chunk : plan_.unit(unit).chunks)
        lanes.compute(parts_.update_of(chunk.shard));
    }
    gather_ahead(-1, lanes);
  }

 private:
  struct Gathered {
    bool present = false, read = false;
    std::vector<double> arrivals;  ///< by chunk
  };
  struct Reduction {
    int unit;
    bool last;                     ///< the sum of the step
    std::vector<double> arrivals;  ///< by chunk; of codes one for all
  };
  /// Over ranks, in fp32 or in a code; and what of a code is left to do when it has arrived.
  std::vector<double> reduce(int unit, Lanes& lanes) const {
    std::vector<double> arrivals;
    if (is_whole()) return arrivals;
    if (!plan_.compression.on()) {
      for (auto const& chunk : plan_.unit(unit).chunks)
        arrivals.push_back(lanes.communicate(parts_.costs.reduce_scatter.at(
            static_cast<double>(whole_bytes(chunk, plan_.types.gradients(chunk))))));
      return arrivals;
    }
    lanes.compute(speed_.encode * static_cast<double>(plan_.gradient_bytes(unit)));
    Transfer codes;
    for (auto const& chunk : plan_.unit(unit).chunks)
      codes = codes + parts_.costs.exchange.at(static_cast<double>(plan_.shard_code_bytes(chunk)));
    return {lanes.communicate((plan_.shards.ranks - 1) * codes)};
  }
  /// A replica is one rank: nothing is gathered or scattered.
  bool is_whole() const { return plan_.replicas > 1 && plan_.shards.ranks == 1; }
  void begin_sum(int unit, bool last, Lanes& lanes) {
    while (plan_.replicas > 1 && !reductions_.empty()) finish_oldest(lanes);
    reductions_.push_back({unit, last, reduce(unit, lanes)});
  }
  std::int64_t whole_bytes(Chunk const& chunk, at::ScalarType type) const {
    return plan_.shards.ranks * chunk.shard * size_of(type);
  }
  void add_up(int unit, Lanes& lanes) const {
    auto const others = plan_.shards.ranks - 1;
    lanes.compute((speed_.decode + others * speed_.decode_and_add) *
                  static_cast<double>(plan_.gradient_bytes(unit)) / plan_.shards.ranks);
  }
  Gathered& state(int unit) { return gathered_[static_cast<std::size_t>(unit)]; }
  int blocks_of(int unit) const {
    return plan_.unit(unit).last_block - plan_.unit(unit).first_block + 1;
  }

  void gather(int unit, Lanes& lanes) {
    if (state(unit).present) return;
    lanes.compute(parameter_speed_.encode * coded_bytes(unit) / plan_.shards.ranks);
    state(unit) = {.present = true};
    if (is_whole()) return;
    for (auto const& chunk : plan_.unit(unit).chunks) {
      auto const bytes = plan_.shards.ranks * plan_.gathered_shard_bytes(chunk);
      state(unit).arrivals.push_back(
          lanes.communicate(parts_.costs.all_gather.at(static_cast<double>(bytes))));
    }
  }
  /// Of the fp32 numbers that are gathered in a code.
  double coded_bytes(int unit) const {
    std::int64_t bytes = 0;
    for (auto const& chunk : plan_.unit(unit).chunks)
      if (plan_.gathers_code(chunk)) bytes += whole_bytes(chunk, at::kFloat);
    return static_cast<double>(bytes);
  }
  void unshard(int unit, Lanes& lanes) {
    gather(unit, lanes);
    for (auto const moment : state(unit).arrivals) lanes.await(moment);
    if (!std::exchange(state(unit).read, true))
      lanes.compute(parameter_speed_.decode * coded_bytes(unit));
  }
  void gather_ahead(int unit, Lanes& lanes) {
    if (!plan_.overlap || plan_.prefetch == 0) return;
    for (int next = unit + 1; next < plan_.units(); ++next) {
      if (plan_.rotates(next) && next - unit > plan_.prefetch) return;
      gather(next, lanes);
    }
  }

  void forward(Lanes& lanes) {
    for (int unit = 0; unit < plan_.units(); ++unit) {
      unshard(unit, lanes);
      gather_ahead(unit, lanes);
      lanes.compute(blocks_of(unit) * parts_.forward_of_block());
      state(unit).present = plan_.stays_after_forward(unit);
    }
  }
  void finish_oldest(Lanes& lanes) {
    auto const reduction = std::move(reductions_.front());
    reductions_.pop_front();
    for (auto const moment : reduction.arrivals) lanes.await(moment);
    add_up(reduction.unit, lanes);
    if (plan_.replicas == 1 || !reduction.last) return;
    for (auto const& chunk : plan_.unit(reduction.unit).chunks)
      over_replicas_[static_cast<std::size_t>(reduction.unit)].push_back(
          lanes.communicate(parts_.all_reduce(chunk.shard)));
  }
  /// A unit's gradients need a slot, which the oldest reduction may have to give up.
  void open(int unit, Lanes& lanes) {
    if (plan_.whole_gradients || plan_.lends(unit)) return;
    auto const in_slots = std::ranges::count_if(
        reductions_, [&](Reduction const& under_way) { return !plan_.lends(under_way.unit); });
    if (in_slots == plan_.gradient_slots) finish_oldest(lanes);
  }
  void finish(int unit, Lanes& lanes) {
    auto const waits = [&] { return std::ranges::count(reductions_, unit, &Reduction::unit) > 0; };
    while (waits()) finish_oldest(lanes);
    auto& sums = over_replicas_[static_cast<std::size_t>(unit)];
    for (auto const moment : sums) lanes.await(moment);
    sums.clear();
  }

  void backward(Lanes& lanes, bool last) {
    for (int unit = plan_.units() - 1; unit >= 0; --unit) {
      unshard(unit, lanes);
      for (int next = unit - 1; plan_.overlap && next >= std::max(unit - plan_.prefetch, 0); --next)
        gather(next, lanes);
      open(unit, lanes);
      lanes.compute(blocks_of(unit) * parts_.backward_of_block());
      if (!plan_.whole_gradients || last) begin_sum(unit, last, lanes);
      if (!plan_.overlap) finish(unit, lanes);
      state(unit).present = plan_.stays_after_backward(unit, last);
    }
  }

  FsdpPlan const& plan_;
  StepParts const& parts_;
  CodecSpeed speed_, parameter_speed_;
  std::vector<Gathered> gathered_;
  std::deque<Reduction> reductions_;                ///< under way, the oldest first
  std::vector<std::vector<double>> over_replicas_;  ///< by unit, of sums that have begun
};

/// "2 slots of 9 MiB", or that there are none.
std::string slots_text(int slots, std::int64_t bytes) {
  if (slots == 0) return "no slots: every unit has room of its own";
  return str(slots, slots == 1 ? " slot of " : " slots of ", bytes_text(bytes));
}

std::string summary_table(FsdpPlan const& plan) {
  Table summary({{"fsdp", Align::left}, {"", Align::left}});
  summary.add_row({"units", str(plan.units(), ", of which ", plan.rotating_units(),
                                " are gathered into slots, ", plan.prefetch, " ahead")});
  summary.add_row({"parameters", slots_text(plan.parameter_slots, plan.parameter_slot_bytes())});
  summary.add_row({"gradients", slots_text(plan.gradient_slots, plan.gradient_slot_bytes())});
  auto const code = plan.parameter_compression;
  summary.add_row(
      {"gathered per step", bytes_text(plan.gathered_bytes_sent()) + " sent" +
                                (code == Code::none ? "" : str(", in ", name_of(code)))});
  summary.add_row({"reduced per step", bytes_text(plan.reduced_bytes_sent()) + " sent"});
  if (plan.replicas > 1)
    summary.add_row({"replicas", str(plan.replicas, " of ", plan.shards.ranks, " ranks; ",
                                     bytes_text(plan.replicated_bytes_sent()),
                                     " sent per step to sum their shards")});
  return summary.render();
}

std::string unit_table(FsdpPlan const& plan, Model const& model) {
  Table table({{"unit"},
               {"gathered"},
               {"shard"},
               {"padding"},
               {"memory", Align::left},
               {"blocks, in forward order", Align::left}});
  for (int i = 0; i < plan.units(); ++i) {
    auto const& unit = plan.unit(i);
    std::int64_t shard = 0, padding = 0;
    for (auto const& chunk : unit.chunks) {
      shard += chunk.shard * size_of(plan.types.master);
      padding += chunk.shard * plan.shards.ranks - chunk.used;
    }
    table.add_row({std::to_string(i), bytes_text(plan.parameter_bytes(i)), bytes_text(shard),
                   bytes_text(padding * size_of(plan.types.master)),
                   plan.rotates(i) ? "slot" : "own",
                   block_range(unit.first_block, unit.last_block, model)});
  }
  return table.render();
}

nlohmann::json units_json(FsdpPlan const& plan) {
  auto units = nlohmann::json::array();
  for (int i = 0; i < plan.units(); ++i) {
    auto const& unit = plan.unit(i);
    auto chunks = nlohmann::json::array();
    for (auto const& chunk : unit.chunks)
      chunks.push_back({{"low_precision", chunk.low_precision},
                        {"elements", chunk.used},
                        {"shard_elements", chunk.shard},
                        {"owned_begin", chunk.owned}});
    units.push_back({{"first_block", unit.first_block},
                     {"last_block", unit.last_block},
                     {"gathered_B", plan.parameter_bytes(i)},
                     {"gathered_wire_B", plan.gathered_bytes(i)},
                     {"rotates", plan.rotates(i)},
                     {"chunks", chunks}});
  }
  return units;
}

class PlannedFsdp final : public PlannedAs<FsdpPlan> {
 public:
  using PlannedAs::PlannedAs;

  Member make(StrategyParts const& parts) const override {
    auto& all = parts.world.all();
    return {.strategy = std::make_unique<DataParallelWorker>(
                std::make_unique<Sharded>(plan_, parts, all, groups_in(parts.world)),
                plan_.micro_batches, parts, all)};
  }

  StepTime time(StepParts const& parts) const override {
    FsdpStep step(plan_, parts);
    return time_of_collectives(steady(parts, [&](Lanes& lanes) { step.run(lanes); }), parts);
  }

  std::string tables(Model const& model) const override {
    return summary_table(plan_) + "\n" + unit_table(plan_, model);
  }

  void add_to(nlohmann::json& document) const override {
    document["units"] = units_json(plan_);
    document["fsdp"] = {{"prefetch", plan_.prefetch},
                        {"parameter_slots", plan_.parameter_slots},
                        {"parameter_slot_B", plan_.parameter_slot_bytes()},
                        {"gradient_slots", plan_.gradient_slots},
                        {"gradient_slot_B", plan_.gradient_slot_bytes()},
                        {"scratch_slot_B", plan_.scratch_slot_bytes()},
                        {"gathered_bytes_per_step", plan_.gathered_bytes_sent()},
                        {"reduced_bytes_per_step", plan_.reduced_bytes_sent()},
                        {"replicas", plan_.replicas},
                        {"replicated_bytes_per_step", plan_.replicated_bytes_sent()}};
  }

 private:
  /// Collective.
  ShardGroups groups_in(World& world) const {
    auto& all = world.all();
    if (plan_.replicas == 1) return {.shards = all};
    return {.shards = world.group("shards", plan_.shard_group(all.rank())),
            .replicas = &world.group("replicas", plan_.replica_group(all.rank()))};
  }
};

}  // namespace

StrategyPlan plan_of(FsdpConfig const& config, PlanInput const& input) {
  auto plan = plan_of_replicas(input);
  auto const buffers = plan.memory[gpu::MemoryCategory::buffers];
  auto const residual =
      config.compression.error_feedback ? input.layout.size() * std::int64_t{sizeof(float)} : 0;
  refuse_codes_without_blocks(config.compression, FsdpConfig::name);
  plan_compression(config.compression, SumCode::plain, input, plan);
  plan_parameter_compression(config.parameter_compression, input, plan);
  auto fsdp = plan_fsdp(config, input.layout, input.optimizer, input.precision.compute, input.ranks,
                        buffers + residual);
  plan.shares.micro_batches = config.micro_batches;
  plan.memory = fsdp.memory();
  plan.memory[gpu::MemoryCategory::gradients] += residual;
  plan.memory[gpu::MemoryCategory::buffers] = buffers;
  plan.traffic.bytes_sent = fsdp.gathered_bytes_sent() + fsdp.reduced_bytes_sent() +
                            fsdp.replicated_bytes_sent() +
                            all_reduce_bytes(status_room * plan.element_size, input.ranks);
  if (input.optimizer.clip_norm > 0 || scales_loss(input.precision))
    plan.traffic.bytes_sent += all_reduce_bytes(ExactSquareSum::bytes, fsdp.shards.ranks);
  plan.traffic.most_bytes_sent = plan.traffic.bytes_sent;
  plan.numbers.order_of_sums =
      order_of_sums(config.micro_batches,
                    fsdp.whole_gradients ? Accumulate::unsharded : config.accumulate,
                    config.replicas, input.ranks) +
      (config.reduce == ReduceType::compute ? ", in the compute type" : "");
  plan.steps_can_be_kept = !config.compression.on() && config.parameter_compression == Code::none &&
                           !input.model.waits_for_device;
  plan.traffic.operations = {BenchOperation::all_gather, config.compression.on()
                                                             ? BenchOperation::send_receive
                                                             : BenchOperation::reduce_scatter};
  if (config.replicas > 1) {
    plan.traffic.operations.push_back(BenchOperation::all_reduce);
    plan.traffic.among = {{BenchOperation::all_gather, fsdp.shards.ranks},
                          {BenchOperation::reduce_scatter, fsdp.shards.ranks},
                          {BenchOperation::all_reduce, fsdp.replicas}};
  }
  plan.hashes.emplace_back("shards", fsdp.shards.hash());
  plan.hashes.emplace_back("slots and order of gathering", fsdp.hash());
  plan.strategy = std::make_shared<PlannedFsdp>(std::move(fsdp));
  return plan;
}

}  // namespace stratagem
