#include "strategy/fsdp/fsdp_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "base/arithmetic.hpp"
#include "base/error.hpp"
#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

using gpu::MemoryCategory;

#ifdef NDEBUG
constexpr bool always_poison = false;
#else
constexpr bool always_poison = true;
#endif

/// The first units up to the last that holds what later blocks borrow.
int count_lenders(ShardPlan const& shards, ParameterLayout const& layout) {
  int count = 0;
  for (int block = 0; block < layout.blocks(); ++block)
    if (layout.lends(block)) count = shards.unit_of(block) + 1;
  return count;
}

/// Slots for the units that rotate, so that `prefetch` of them can be ahead of the one that runs.
void share_slots(FsdpPlan& plan, int prefetch, int rotating) {
  plan.prefetch = prefetch;
  plan.rotating = rotating;
  plan.parameter_slots = std::min(prefetch + 1, plan.rotating_units());
  plan.gradient_slots =
      plan.whole_gradients ? 0 : std::min(prefetch + 1, plan.units() - plan.lenders);
}

void check_compression(FsdpConfig const& config, FsdpPlan const& plan) {
  if (!config.compression.on()) return;
  auto const refuse = [](std::string const& other, std::string const& why,
                         std::string const& cure) {
    throw Error(ExitCode::usage, "strategy.compression together with " + other, why, cure);
  };
  if (config.reduce == ReduceType::compute)
    refuse("strategy.reduce: compute", "codes are made of fp32 gradients",
           "leave one of the two out");
  if (config.micro_batches > 1 && !plan.whole_gradients)
    refuse("strategy.micro_batches and accumulate: sharded",
           "a worker's gradients are coded once per step", "take accumulate: unsharded");
}

void check(FsdpConfig const& config, FsdpPlan const& plan) {
  auto refuse = [&](std::string const& what) {
    throw Error(ExitCode::usage, what, str("the model is cut into ", plan.units(), " units"),
                "take fewer, or make units smaller with strategy.unit_mb");
  };
  if (config.prefetch > plan.units()) refuse(str("strategy.prefetch: ", config.prefetch));
  if (config.keep_units > plan.units()) refuse(str("strategy.keep_units: ", config.keep_units));
  bool const whole = config.shard == Shard::optimizer ||
                     (config.accumulate == Accumulate::unsharded && config.micro_batches > 1);
  if (whole && config.reduce == ReduceType::compute)
    throw Error(ExitCode::usage, "strategy.reduce: compute",
                "gradients that are kept whole are summed in the type of the master parameters",
                "leave reduce out, or take shard: full or gradients with accumulate: sharded");
  check_compression(config, plan);
}

struct TooSmall : Error {
  TooSmall(std::string const& budget, std::int64_t least)
      : Error(ExitCode::does_not_fit, str("strategy.memory_budget: ", budget, " is too small"),
              str("each rank holds at least ", format_count(least), " bytes (",
                  format_bytes(static_cast<double>(least)), ")"),
              "give more memory, more ranks, or smaller units (strategy.unit_mb)"),
        least(least) {}

  std::int64_t least;  ///< that a rank holds with these units, however they share slots [B]
};

/// The largest prefetch up to the configured one, and then the fewest units, up to `most_rotating`,
/// that share slots, with which the plan fits. Of a small model, slots may hold more than the units
/// do.
void fit(FsdpPlan& plan, FsdpConfig const& config, int most_rotating, std::int64_t other_bytes) {
  auto const budget = parse_bytes(config.memory_budget);
  if (!budget)
    throw Error(ExitCode::usage, "strategy.memory_budget: " + config.memory_budget,
                "it is not a number of bytes", "write it as 600MiB or 2GiB");
  auto const needs = [&](int prefetch, int rotating) {
    share_slots(plan, prefetch, rotating);
    return plan.memory().total() + other_bytes;
  };
  auto least = std::numeric_limits<std::int64_t>::max();
  for (int prefetch = std::max(config.prefetch, 1); prefetch >= 1; --prefetch)
    for (int rotating = std::min(plan.lenders, most_rotating); rotating <= most_rotating;
         ++rotating) {
      auto const needed = needs(prefetch, rotating);
      if (needed <= *budget) return;
      least = std::min(least, needed);
    }
  throw TooSmall(config.memory_budget, least);
}

void check_replicas(FsdpConfig const& config, int ranks) {
  if (ranks % config.replicas != 0)
    throw Error(ExitCode::usage,
                str("strategy.replicas: ", config.replicas, " replicas on ", ranks, " ranks"),
                "each is cut into equally many shards", "take one of " + divisors_text(ranks));
  if (config.replicas > 1 &&
      (config.compression.on() || config.parameter_compression != Code::none))
    throw Error(ExitCode::usage,
                str("strategy.replicas together with strategy.",
                    config.compression.on() ? "compression" : "parameter_compression"),
                "codes travel among all ranks at once", "leave one of them out");
}

FsdpPlan plan_units(FsdpConfig const& config, ParameterLayout const& layout,
                    OptimizerConfig const& optimizer, Precision precision, int ranks,
                    std::int64_t other_bytes) {
  FsdpPlan plan;
  plan.types.master = master_type(precision);
  plan.types.compute = compute_type(precision);
  plan.states = state_count(optimizer);
  plan.parameter_compression = config.parameter_compression;
  bool const mixed =
      plan.types.compute != plan.types.master || plan.parameter_compression != Code::none;
  bool const alone = ranks == 1;  // nothing is cut, gathered or reduced
  plan.types.low_gradient =
      config.reduce == ReduceType::compute && !alone ? plan.types.compute : plan.types.master;
  auto const unit_elements = saturated(config.unit_mb * (1 << 20)) / size_of(plan.types.master);
  plan.shards = make_shard_plan(layout, ranks, std::max<std::int64_t>(unit_elements, 1), mixed);
  plan.lenders = count_lenders(plan.shards, layout);
  plan.micro_batches = config.micro_batches;
  plan.overlap = config.overlap;
  plan.poison = config.poison || always_poison;
  plan.compression = config.compression;
  plan.whole_gradients = alone || config.shard == Shard::optimizer ||
                         (config.accumulate == Accumulate::unsharded && config.micro_batches > 1);
  check(config, plan);
  bool const all_stay = alone || config.shard != Shard::full || !config.reshard_after_forward;
  share_slots(plan, config.prefetch, all_stay ? 0 : plan.units() - config.keep_units);
  if (!config.memory_budget.empty()) fit(plan, config, all_stay ? 0 : plan.units(), other_bytes);
  return plan;
}

/// The largest units that a budget has room for; without one, the largest with which a rank holds
/// hardly more than with any: the slots of large units outweigh what is shared out of a small
/// model.
FsdpPlan choose_units(FsdpConfig const& given, ParameterLayout const& layout,
                      OptimizerConfig const& optimizer, Precision precision, int ranks,
                      std::int64_t other_bytes) {
  auto config = given;
  constexpr std::array sizes_mb{4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625};
  constexpr double hardly_more = 1.05;
  std::vector<FsdpPlan> plans;
  std::optional<TooSmall> too_small;
  std::optional<Error> problem;
  for (auto const size : sizes_mb) {
    config.unit_mb = size;
    try {
      plans.push_back(plan_units(config, layout, optimizer, precision, ranks, other_bytes));
    } catch (TooSmall const& refused) {
      if (!too_small || refused.least < too_small->least) too_small = refused;
    } catch (Error const& refused) {
      problem = refused;
    }
  }
  if (plans.empty() && too_small) throw *too_small;
  if (plans.empty()) throw *problem;
  if (!config.memory_budget.empty()) return plans.front();
  auto const held = [&](FsdpPlan const& plan) {
    return static_cast<double>(plan.memory().total());
  };
  auto const enough = hardly_more * held(std::ranges::min(plans, {}, held));
  return *std::ranges::find_if(plans, [&](auto const& plan) { return held(plan) <= enough; });
}

}  // namespace

bool FsdpPlan::reduces_into_scratch() const {
  if (whole_gradients) return false;
  return micro_batches > 1 || types.low_gradient != types.master;
}

std::int64_t FsdpPlan::bytes(int index, at::ScalarType (Types::*type)(Chunk const&) const) const {
  std::int64_t sum = 0;
  for (auto const& chunk : unit(index).chunks)
    sum += shards.ranks * chunk.shard * size_of((types.*type)(chunk));
  return sum;
}

std::int64_t FsdpPlan::gathered_shard_bytes(Chunk const& chunk) const {
  return gathers_code(chunk) ? wire_bytes(parameter_compression, chunk.shard / block_elements)
                             : chunk.shard * size_of(types.parameters(chunk));
}

std::int64_t FsdpPlan::gathered_bytes(int index) const {
  std::int64_t sum = 0;
  for (auto const& chunk : unit(index).chunks) sum += shards.ranks * gathered_shard_bytes(chunk);
  return sum;
}

std::int64_t FsdpPlan::parameter_slot_bytes() const {
  std::int64_t most = 0;
  for (int i = lenders; i < rotating; ++i) most = std::max(most, parameter_bytes(i));
  return most;
}

std::int64_t FsdpPlan::gradient_slot_bytes() const {
  std::int64_t most = 0;
  for (int i = lenders; i < units(); ++i) most = std::max(most, gradient_bytes(i));
  return most;
}

std::int64_t FsdpPlan::scratch_bytes(int unit) const {
  return reduces_into_scratch() ? gradient_bytes(unit) / shards.ranks : 0;
}

std::int64_t FsdpPlan::scratch_slot_bytes() const {
  return reduces_into_scratch() ? gradient_slot_bytes() / shards.ranks : 0;
}

std::int64_t FsdpPlan::code_bytes(int index) const {
  if (!compression.on()) return 0;
  std::int64_t sum = 0;
  for (auto const& chunk : unit(index).chunks) sum += 2 * shards.ranks * shard_code_bytes(chunk);
  return sum;
}

std::int64_t FsdpPlan::code_slot_bytes() const {
  std::int64_t most = 0;
  for (int i = lenders; i < units(); ++i) most = std::max(most, code_bytes(i));
  return most;
}

OwnedElements FsdpPlan::owned_by(int rank, ParameterLayout const& layout) const {
  OwnedElements owned{.size = shards.owned};
  for (auto const& unit : shards.units)
    for (auto const& chunk : unit.chunks) {
      auto const first = rank * chunk.shard;
      for (auto const& place : chunk.places) {
        auto const& spec = layout.entries()[place.entry].spec;
        auto const part = stratagem::overlap({place.offset, place.offset + spec.numel()},
                                             {first, first + chunk.shard});
        note_vector(owned, spec,
                    {part.begin - first + chunk.owned, part.end - first + chunk.owned});
      }
    }
  return owned;
}

gpu::MemoryUse FsdpPlan::memory() const {
  gpu::MemoryUse use;
  auto const master = size_of(types.master);
  auto& parameters = use[MemoryCategory::parameters];
  parameters = parameter_slots * parameter_slot_bytes();
  for (int i = 0; i < units(); ++i) {
    if (!rotates(i)) parameters += parameter_bytes(i);
    for (auto const& chunk : unit(i).chunks)
      if (!shard_in_place(i, chunk)) parameters += chunk.shard * master;
  }
  auto& gradients = use[MemoryCategory::gradients];
  gradients = status_room * master;
  if (whole_gradients) {
    gradients += shards.elements() * master;
    for (int i = 0; i < units(); ++i) gradients += code_bytes(i);
  } else {
    gradients +=
        shards.owned * master +
        gradient_slots * (gradient_slot_bytes() + scratch_slot_bytes() + code_slot_bytes());
    for (int i = 0; i < lenders; ++i)
      gradients += gradient_bytes(i) + scratch_bytes(i) + code_bytes(i);
  }
  use[MemoryCategory::optimizer] = states * shards.owned * master;
  return use;
}

std::int64_t FsdpPlan::gathered_bytes_sent() const {
  std::int64_t bytes = 0;
  for (int i = 0; i < units(); ++i) {
    std::int64_t times = 1;
    if (rotates(i)) {
      times += (micro_batches - 1) * (stays_after_backward(i, false) ? 0 : 1);
      times += micro_batches * (stays_after_forward(i) ? 0 : 1);
    }
    bytes += times * gathered_bytes(i) / shards.ranks * (shards.ranks - 1);
  }
  return bytes;
}

std::int64_t FsdpPlan::reduced_bytes_sent() const {
  std::int64_t bytes = 0;
  for (int i = 0; i < units(); ++i) {
    auto const of_all = compression.on() ? code_bytes(i) / 2 : gradient_bytes(i);
    bytes += of_all / shards.ranks * (shards.ranks - 1);
  }
  return bytes * (whole_gradients ? 1 : micro_batches);
}

std::int64_t FsdpPlan::replicated_bytes_sent() const {
  std::int64_t bytes = 0;
  for (auto const& unit : shards.units)
    for (auto const& chunk : unit.chunks)
      bytes += all_reduce_bytes(chunk.shard * size_of(types.master), replicas);
  return bytes;
}

std::vector<int> FsdpPlan::shard_group(int rank) const {
  std::vector<int> group(static_cast<std::size_t>(shards.ranks));
  std::iota(group.begin(), group.end(), rank / shards.ranks * shards.ranks);
  return group;
}

std::vector<int> FsdpPlan::replica_group(int rank) const {
  std::vector<int> group;
  for (int member = rank % shards.ranks; member < ranks(); member += shards.ranks)
    group.push_back(member);
  return group;
}

std::uint64_t FsdpPlan::hash() const {
  Hash hash;
  hash.add(shards.hash());
  for (int const value : {replicas, lenders, rotating, prefetch, parameter_slots, gradient_slots,
                          static_cast<int>(whole_gradients), micro_batches,
                          static_cast<int>(types.compute), static_cast<int>(types.low_gradient)})
    hash.add(static_cast<std::uint64_t>(value));
  return hash.value();
}

FsdpPlan plan_fsdp(FsdpConfig const& config, ParameterLayout const& layout,
                   OptimizerConfig const& optimizer, Precision precision, int ranks,
                   std::int64_t other_bytes) {
  check_replicas(config, ranks);
  auto const make = config.unit_mb > 0 ? plan_units : choose_units;
  auto plan = make(config, layout, optimizer, precision, ranks / config.replicas, other_bytes);
  plan.replicas = config.replicas;
  return plan;
}

}  // namespace stratagem
