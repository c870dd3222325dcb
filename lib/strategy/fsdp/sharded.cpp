#include "strategy/fsdp/sharded.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {

using trace::Phase;

Sharded::Sharded(FsdpPlan plan, StrategyParts const& parts, Communicator& all,
                 ShardGroups const& groups)
    : parts_(parts),
      all_(all),
      shards_(groups.shards),
      layout_(make_layout(parts.model)),
      plan_(std::move(plan)),
      parameters_(plan_, layout_, shards_, parts.device, parts.seed, plan_.poison),
      gradients_(plan_, layout_, parts_, groups),
      status_(parts.allocate(gpu::MemoryCategory::gradients, status_room)),
      update_(parts.optimizer, parts.precision, all.size(), plan_.micro_batches,
              plan_.owned_by(shards_.rank(), layout_), parts.device) {}

void Sharded::begin_step(std::int64_t step, bool kept) {
  step_ = step;
  if (kept) parameters_.reshard_all();
}

std::span<at::Tensor const> Sharded::unshard(int block, Direction direction) {
  auto const unit = unit_of(block);
  if (direction == Direction::forward && is_first(block)) unshard_for_forward(unit);
  if (direction == Direction::backward && is_last(block)) unshard_for_backward(unit);
  if (direction == Direction::inference && is_first(block)) {
    parameters_.unshard(unit);
    gather_ahead(unit);
  }
  return parameters_.of_block(block);
}

void Sharded::unshard_for_forward(int unit) {
  parts_.recorder.enter(Phase::comm_exposed);
  parameters_.unshard(unit);
  gather_ahead(unit);
}

void Sharded::unshard_for_backward(int unit) {
  parts_.recorder.enter(Phase::comm_exposed);
  parameters_.unshard(unit);
  if (plan_.overlap)
    for (int next = unit - 1; next >= std::max(unit - plan_.prefetch, 0); --next)
      parameters_.gather(next);
  if (!plan_.lends(unit)) gradients_.open(unit);
}

/// Units that share slots are gathered as far ahead as slots reach, the others without delay.
void Sharded::gather_ahead(int unit) {
  if (!plan_.overlap || plan_.prefetch == 0) return;
  for (int next = unit + 1; next < plan_.units(); ++next) {
    if (plan_.rotates(next) && next - unit > plan_.prefetch) return;
    parameters_.gather(next);
  }
}

void Sharded::reshard(int block, Direction direction) {
  auto const unit = unit_of(block);
  bool const gives_up = direction == Direction::forward ? !plan_.stays_after_forward(unit)
                        : direction == Direction::inference
                            ? plan_.rotates(unit)
                            : !plan_.stays_after_backward(unit, is_last_pass());
  bool const is_through = direction == Direction::backward ? is_first(block) : is_last(block);
  if (is_through && gives_up) parameters_.reshard(unit);
}

void Sharded::begin_backward() {
  if (is_last_pass()) {
    status_.seal(status_.fingerprint(all_.collectives()));
    status_sum_ = all_.all_reduce(status_.memory());
    if (!plan_.overlap) status_sum_.wait_on_stream();
  }
  for (int unit = 0; unit < plan_.lenders; ++unit) gradients_.open(unit);
}

GradientTarget Sharded::gradients(int block) {
  // Whole gradients add up where they land; others are summed over ranks first.
  bool const adds = plan_.whole_gradients && pass_ > 0;
  return {gradients_.of_block(block), adds ? GradWrite::accumulate : GradWrite::overwrite};
}

void Sharded::landed(int block) {
  if (!is_first(block)) return;
  auto const unit = unit_of(block);
  bool const adds = !plan_.whole_gradients && pass_ > 0;
  if (plan_.replicas > 1) parts_.recorder.enter(Phase::comm_exposed);
  if (!plan_.whole_gradients || is_last_pass())
    gradients_.reduce_scatter(unit, adds ? GradWrite::accumulate : GradWrite::overwrite,
                              is_last_pass(), step_);
  if (plan_.overlap) return;
  parts_.recorder.enter(Phase::comm_exposed);
  gradients_.finish(unit);
}

void Sharded::await_status() {
  parts_.recorder.enter(Phase::comm_exposed);
  status_sum_.wait_on_stream();
}

void Sharded::await_sums() {
  parts_.recorder.enter(Phase::comm_exposed);
  for (int unit = plan_.units() - 1; unit >= 0; --unit) gradients_.finish(unit);
}

void Sharded::apply(double lr, std::optional<at::Tensor> const& refusal) {
  update_.begin();
  for (int unit = plan_.units() - 1; unit >= 0; --unit) {
    parts_.recorder.enter(Phase::comm_exposed);
    gradients_.finish(unit);
    parts_.recorder.enter(Phase::optimizer);
    update_unit(unit, lr, refusal);
  }
}

void Sharded::end_step(bool kept) {
  if (!kept) gather_ahead(-1);  // what the next forward pass begins with
}

void Sharded::refuse_gradient(std::int64_t step) const {
  throw bad_gradient(step, str("in the shard of rank ", all_.rank()), own_gradients());
}

void Sharded::gather_replicas() {
  parts_.recorder.enter(Phase::comm_exposed);
  for (int unit = 0; unit < plan_.units(); ++unit)
    if (!plan_.rotates(unit)) parameters_.unshard(unit);
}

void Sharded::update_unit(int unit, double lr, std::optional<at::Tensor> const& refusal) {
  for (std::size_t c = 0; c < plan_.unit(unit).chunks.size(); ++c) {
    auto const& chunk = plan_.unit(unit).chunks[c];
    update_.apply({chunk.owned, chunk.owned + chunk.shard}, parameters_.shard(unit, c),
                  gradients_.shard(unit, c), lr, refusal);
  }
}

NamedTensors Sharded::own_gradients() const {
  NamedTensors own;
  for (int unit = 0; unit < plan_.units(); ++unit)
    for (std::size_t c = 0; c < plan_.unit(unit).chunks.size(); ++c) {
      auto const& chunk = plan_.unit(unit).chunks[c];
      auto const first = shards_.rank() * chunk.shard;
      for (auto const& place : chunk.places) {
        auto const& spec = layout_.entries()[place.entry].spec;
        auto const part =
            overlap({place.offset, place.offset + spec.numel()}, {first, first + chunk.shard});
        if (part.size() <= 0) continue;
        own.emplace_back(label_of(spec),
                         gradients_.shard(unit, c).narrow(0, part.begin - first, part.size()));
      }
    }
  return own;
}

NamedTensors Sharded::replicas() const {
  NamedTensors tensors;
  for (int unit = 0; unit < plan_.units(); ++unit) {
    if (plan_.rotates(unit) || !parameters_.is_gathered(unit)) continue;
    for (int block = plan_.unit(unit).first_block; block <= plan_.unit(unit).last_block; ++block) {
      auto const held = parameters_.of_block(block);
      auto const entries = layout_.entries(block);
      for (std::size_t i = 0; i < entries.size(); ++i)
        tensors.emplace_back("parameters/" + label_of(entries[i].spec), held[i]);
    }
  }
  return tensors;
}

State Sharded::state() {
  auto const type = plan_.types.master;
  State state{.of_parameters = {{State::parameters, type,
                                 parameters_.pieces([this](int unit, std::size_t c) {
                                   return parameters_.shard(unit, c);
                                 })}},
              .counters = update_.counters(),
              .replicas = replicas()};
  for (auto const& [kind, owned] : update_.state())
    state.of_parameters.push_back({kind, type, parameters_.pieces([&](int unit, std::size_t c) {
                                     auto const& own = plan_.unit(unit).chunks[c];
                                     return owned.narrow(0, own.owned, own.shard);
                                   })});
  std::ranges::move(gradients_.residuals(), std::back_inserter(state.of_parameters));
  return state;
}

}  // namespace stratagem
