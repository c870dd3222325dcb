#include "strategy/fsdp/parameter_units.hpp"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "gpu/memory.hpp"
#include "params/initialise.hpp"

namespace stratagem {

using Kind = UnitViews::Kind;

ParameterUnits::ParameterUnits(FsdpPlan const& plan, ParameterLayout const& layout,
                               Communicator& communicator, gpu::Device const& device,
                               std::uint64_t seed, bool poison)
    : plan_(plan), layout_(layout), communicator_(communicator), device_(device), poison_(poison) {
  if (plan.parameter_compression != Code::none) coded_.emplace(plan, device);
  for (int unit = 0; unit < plan.units(); ++unit)
    units_.push_back({.views = {plan, unit, Kind::parameters, layout, device}});
  std::vector<UnitViews const*> views;
  for (auto const& unit : units_) views.push_back(&unit.views);
  by_block_ = tensors_by_block(views, plan, layout);
  allocate_shards();
  initialise_shards(seed);
  allocate_slots();  // last, so that they do not add to what initialisation needs
}

at::Tensor ParameterUnits::whole_chunk(int unit, std::size_t chunk) const {
  return chunk_of(units_[static_cast<std::size_t>(unit)].memory, plan_, unit, chunk,
                  Kind::parameters);
}

void ParameterUnits::allocate_shards() {
  gpu::MemoryScope const scope(gpu::MemoryCategory::parameters, device_);
  for (int index = 0; index < plan_.units(); ++index) {
    auto& unit = units_[static_cast<std::size_t>(index)];
    if (!plan_.rotates(index))
      unit.memory = communicator_.allocate(plan_.parameter_bytes(index), at::kByte);
    for (std::size_t c = 0; c < plan_.unit(index).chunks.size(); ++c) {
      auto const& chunk = plan_.unit(index).chunks[c];
      unit.shards.push_back(plan_.shard_in_place(index, chunk)
                                ? own_part(whole_chunk(index, c), chunk, communicator_.rank())
                                : communicator_.allocate(chunk.shard, plan_.types.master));
    }
  }
}

void ParameterUnits::allocate_slots() {
  gpu::MemoryScope const scope(gpu::MemoryCategory::parameters, device_);
  for (int i = 0; i < plan_.parameter_slots; ++i)
    free_slots_.push_back(communicator_.allocate(plan_.parameter_slot_bytes(), at::kByte));
}

template <class Visit>
void ParameterUnits::for_each_own(Visit visit) const {
  for (int unit = 0; unit < plan_.units(); ++unit)
    for (std::size_t c = 0; c < plan_.unit(unit).chunks.size(); ++c) {
      auto const& chunk = plan_.unit(unit).chunks[c];
      auto const first = communicator_.rank() * chunk.shard;
      FlatRange const own{first, first + chunk.shard};
      for (auto const& place : chunk.places) {
        auto const& entry = layout_.entries()[place.entry];
        FlatRange const whole{place.offset, place.offset + entry.spec.numel()};
        if (overlap(whole, own).size() > 0) visit(place, own, unit, c);
      }
    }
}

void ParameterUnits::initialise_shards(std::uint64_t seed) {
  auto const options = at::TensorOptions().dtype(plan_.types.master).device(device_.torch());
  for_each_own([&](Chunk::Place const& place, FlatRange own, int unit, std::size_t chunk) {
    auto const& entry = layout_.entries()[place.entry];
    auto const values = at::empty_strided(entry.spec.shape, entry.strides, options);
    initialise(values, entry.spec, seed);
    copy_overlap(values, entry, place.offset, own, shard(unit, chunk));
  });
}

std::vector<StatePiece> ParameterUnits::pieces(
    std::function<at::Tensor(int, std::size_t)> const& shard) const {
  std::vector<StatePiece> pieces;
  for_each_own([&](Chunk::Place const& place, FlatRange own, int unit, std::size_t chunk) {
    auto const numel = layout_.entries()[place.entry].spec.numel();
    auto const part = overlap({place.offset, place.offset + numel}, own);
    pieces.push_back({place.entry,
                      {part.begin - place.offset, part.end - place.offset},
                      {shard(unit, chunk).narrow(0, part.begin - own.begin, part.size())}});
  });
  return pieces;
}

void ParameterUnits::gather(int index) {
  auto& unit = units_[static_cast<std::size_t>(index)];
  if (unit.state != State::sharded) return;
  at::NoGradGuard const no_grad;
  if (plan_.rotates(index)) {
    expects(!free_slots_.empty(), "a free slot");
    unit.memory = std::move(free_slots_.back());
    free_slots_.pop_back();
  }
  for (std::size_t c = 0; c < unit.shards.size(); ++c) start_gather(index, c);
  unit.state = State::gathering;
}

/// A shard of another type, or a code, is written to its part of the whole before it travels.
void ParameterUnits::start_gather(int index, std::size_t c) {
  auto& unit = units_[static_cast<std::size_t>(index)];
  auto const& chunk = plan_.unit(index).chunks[c];
  bool const in_code = plan_.gathers_code(chunk);
  auto const memory = whole_chunk(index, c);
  auto const whole = in_code ? coded_->codes_in(chunk, memory) : memory;
  auto const numel = whole.numel() / plan_.shards.ranks;
  auto part = whole.narrow(0, communicator_.rank() * numel, numel);
  if (in_code)
    coded_->write(unit.shards[c], part);
  else if (whole.scalar_type() != plan_.types.master)
    part.copy_(unit.shards[c]);
  else
    part = unit.shards[c];
  if (plan_.shards.ranks > 1) unit.works.push_back(communicator_.all_gather(whole, part));
}

void ParameterUnits::unshard(int index) {
  gather(index);
  auto& unit = units_[static_cast<std::size_t>(index)];
  if (unit.state == State::gathered) return;
  for (auto& work : unit.works) work.wait_on_stream();
  unit.works.clear();
  for (std::size_t c = 0; c < unit.shards.size(); ++c)
    if (auto const& chunk = plan_.unit(index).chunks[c]; plan_.gathers_code(chunk))
      coded_->read(chunk, whole_chunk(index, c));
  unit.views.point_to(unit.memory);
  unit.state = State::gathered;
}

void ParameterUnits::reshard(int index) {
  auto& unit = units_[static_cast<std::size_t>(index)];
  expects(unit.state == State::gathered, "what is resharded was unsharded");
  unit.views.point_nowhere();
  if (poison_) poison(unit, index);
  if (plan_.rotates(index)) free_slots_.push_back(std::move(unit.memory));
  unit.state = State::sharded;
}

void ParameterUnits::wait() {
  for (int index = 0; index < plan_.units(); ++index)
    if (units_[static_cast<std::size_t>(index)].state == State::gathering) unshard(index);
}

void ParameterUnits::reshard_all() {
  wait();
  for (int index = 0; index < plan_.units(); ++index)
    if (units_[static_cast<std::size_t>(index)].state == State::gathered) reshard(index);
}

void ParameterUnits::poison(Gathered& unit, int index) const {
  at::NoGradGuard const no_grad;
  for (std::size_t c = 0; c < unit.shards.size(); ++c) {
    auto const& chunk = plan_.unit(index).chunks[c];
    auto const whole = whole_chunk(index, c);
    for (int rank = 0; rank < plan_.shards.ranks; ++rank)
      if (rank != communicator_.rank() || !plan_.shard_in_place(index, chunk))
        own_part(whole, chunk, rank).fill_(std::numeric_limits<double>::quiet_NaN());
  }
}

}  // namespace stratagem
