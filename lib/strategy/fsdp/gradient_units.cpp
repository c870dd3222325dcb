#include "strategy/fsdp/gradient_units.hpp"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "gpu/memory.hpp"

namespace stratagem {

using Kind = UnitViews::Kind;

GradientUnits::GradientUnits(FsdpPlan const& plan, ParameterLayout const& layout,
                             StrategyParts const& parts, ShardGroups const& groups)
    : plan_(plan), parts_(parts), groups_(groups) {
  for (int unit = 0; unit < plan.units(); ++unit) {
    units_.push_back({.views = {plan, unit, Kind::gradients, layout, parts.device}});
    for (auto const& chunk : plan.unit(unit).chunks)
      units_.back().gaps.push_back(gaps(chunk, layout, plan.shards.ranks));
  }
  std::vector<UnitViews const*> views;
  for (auto const& unit : units_) views.push_back(&unit.views);
  by_block_ = tensors_by_block(views, plan, layout);
  if (plan.compression.on()) coded_.emplace(plan, layout, parts, groups.shards);
  allocate();
}

void GradientUnits::allocate() {
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts_.device);
  for (int index = 0; index < plan_.units(); ++index) {
    auto& unit = units_[static_cast<std::size_t>(index)];
    if (plan_.whole_gradients || plan_.lends(index)) {
      unit.slot.memory = groups_.shards.allocate(plan_.gradient_bytes(index), at::kByte);
      if (coded_) unit.slot.codes = coded_->make_room(plan_.code_bytes(index));
    }
    if (plan_.lends(index) && plan_.reduces_into_scratch())
      unit.slot.scratch = groups_.shards.allocate(plan_.scratch_bytes(index), at::kByte);
    if (plan_.whole_gradients) unit.views.point_to(unit.slot.memory);
    for (std::size_t c = 0; c < plan_.unit(index).chunks.size(); ++c) {
      auto const& chunk = plan_.unit(index).chunks[c];
      unit.shards.push_back(
          plan_.whole_gradients
              ? own_part(chunk_of(unit.slot.memory, plan_, index, c, Kind::gradients), chunk,
                         groups_.shards.rank())
              : groups_.shards.allocate(chunk.shard, plan_.types.master));
    }
  }
  for (int i = 0; i < plan_.gradient_slots; ++i) {
    auto& slot = free_slots_.emplace_back();
    slot.memory = groups_.shards.allocate(plan_.gradient_slot_bytes(), at::kByte);
    if (plan_.reduces_into_scratch())
      slot.scratch = groups_.shards.allocate(plan_.scratch_slot_bytes(), at::kByte);
    if (coded_) slot.codes = coded_->make_room(plan_.code_slot_bytes());
  }
}

void GradientUnits::open(int index) {
  if (plan_.whole_gradients) return;
  at::NoGradGuard const no_grad;
  auto& unit = units_[static_cast<std::size_t>(index)];
  if (plan_.lends(index))
    finish(index);
  else
    unit.slot = take_slot();
  unit.views.point_to(unit.slot.memory);
  for (std::size_t c = 0; c < unit.gaps.size(); ++c) {
    auto const whole = chunk_of(unit.slot.memory, plan_, index, c, Kind::gradients);
    if (plan_.poison) whole.fill_(std::numeric_limits<double>::quiet_NaN());
    for (auto const& gap : unit.gaps[c]) whole.narrow(0, gap.begin, gap.size()).zero_();
  }
}

GradientUnits::Slot GradientUnits::take_slot() {
  while (free_slots_.empty()) finish_oldest();
  auto slot = std::move(free_slots_.back());
  free_slots_.pop_back();
  return slot;
}

at::Tensor GradientUnits::destination(int index, std::size_t c, GradWrite write) const {
  auto const& unit = units_[static_cast<std::size_t>(index)];
  auto const type = plan_.types.gradients(plan_.unit(index).chunks[c]);
  if (write == GradWrite::overwrite && type == plan_.types.master) return unit.shards[c];
  return shards_of(unit.slot.scratch, plan_, index, c, Kind::gradients, 1);
}

void GradientUnits::reduce_scatter(int index, GradWrite write, bool last, std::int64_t step) {
  if (plan_.ranks() == 1 && !coded_) return;
  expects(!coded_ || write == GradWrite::overwrite, "gradients are coded once per step");
  if (groups_.replicas != nullptr)
    while (!reductions_.empty()) finish_oldest();
  auto& unit = units_[static_cast<std::size_t>(index)];
  Reduction reduction{
      .unit = index, .write = write, .last = last, .works = {}, .summed = {}, .coded = {}};
  bool const is_cut = plan_.shards.ranks > 1 || coded_;
  for (std::size_t c = 0; is_cut && c < unit.shards.size(); ++c) {
    auto const whole = chunk_of(unit.slot.memory, plan_, index, c, Kind::gradients);
    if (coded_) {
      reduction.coded.push_back(coded_->begin(index, c, whole, unit.slot.codes, step));
      continue;
    }
    reduction.summed.push_back(destination(index, c, write));
    reduction.works.push_back(groups_.shards.reduce_scatter(reduction.summed.back(), whole));
  }
  if (!plan_.whole_gradients) unit.views.point_nowhere();
  reductions_.push_back(std::move(reduction));
}

void GradientUnits::finish_oldest() {
  expects(!reductions_.empty(), "a slot that is in use is being reduced");
  at::NoGradGuard const no_grad;
  auto reduction = std::move(reductions_.front());
  reductions_.pop_front();
  auto& unit = units_[static_cast<std::size_t>(reduction.unit)];
  for (std::size_t c = 0; c < reduction.coded.size(); ++c)
    coded_->finish(std::move(reduction.coded[c]), reduction.unit, c, unit.slot.codes,
                   unit.shards[c]);
  finish_sums(reduction);
  if (!plan_.whole_gradients && !plan_.lends(reduction.unit))
    free_slots_.push_back(std::move(unit.slot));
  if (groups_.replicas != nullptr && reduction.last) all_reduce(reduction.unit);
}

void GradientUnits::all_reduce(int index) {
  auto& unit = units_[static_cast<std::size_t>(index)];
  for (auto const& shard : unit.shards)
    unit.over_replicas.push_back(groups_.replicas->all_reduce(shard));
}

void GradientUnits::finish_sums(Reduction& reduction) {
  auto const& unit = units_[static_cast<std::size_t>(reduction.unit)];
  for (std::size_t c = 0; c < reduction.works.size(); ++c) {
    reduction.works[c].wait_on_stream();
    auto const& summed = reduction.summed[c];
    if (summed.is_same(unit.shards[c])) continue;
    if (reduction.write == GradWrite::overwrite)
      unit.shards[c].copy_(summed);
    else
      unit.shards[c].add_(summed);
  }
}

void GradientUnits::finish(int index) {
  auto const waits = [&] {
    return std::ranges::any_of(reductions_, [&](Reduction const& r) { return r.unit == index; });
  };
  while (waits()) finish_oldest();
  auto& sums = units_[static_cast<std::size_t>(index)].over_replicas;
  for (auto& work : sums) work.wait_on_stream();
  sums.clear();
}

std::vector<at::Tensor> GradientUnits::shards() const {
  std::vector<at::Tensor> all;
  for (auto const& unit : units_) all.insert(all.end(), unit.shards.begin(), unit.shards.end());
  return all;
}

std::vector<ParameterState> GradientUnits::residuals() const {
  return coded_ ? coded_->state() : std::vector<ParameterState>();
}

}  // namespace stratagem
