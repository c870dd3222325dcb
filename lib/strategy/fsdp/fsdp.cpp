#include "strategy/fsdp/fsdp.hpp"

#include <algorithm>
#include <iterator>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "strategy/shared/cross_entropy.hpp"
#include "strategy/shared/micro_batches.hpp"
#include "strategy/shared/model_layout.hpp"

namespace stratagem {

using trace::Phase;

Fsdp::Fsdp(FsdpPlan plan, StrategyParts const& parts)
    : parts_(parts),
      layout_(make_layout(parts.model)),
      plan_(std::move(plan)),
      buffers_(make_buffers(parts.model, parts.device, parts.precision.compute)),
      parameters_(plan_, layout_, parts.world.all(), parts.device, parts.seed, plan_.poison),
      gradients_(plan_, layout_, parts_),
      status_(parts.allocate(gpu::MemoryCategory::gradients, status_room)),
      tape_(parts.model.blocks, parts.recompute),
      update_(parts.optimizer, parts.precision, parts.world.all().size(), plan_.micro_batches,
              plan_.owned_by(parts.world.all().rank(), layout_), parts.device),
      graph_(parts) {}

StepResult Fsdp::step(Batch const& batch, StepOptions const& options) {
  hash_replicas(options.compare_replicas);
  status_.begin(options);
  if (graph_.keeps()) status_.tell(fingerprint(parts_.world.all().collectives(), hashes_));
  if (graph_.keeps()) parameters_.reshard_all();
  graph_.run(batch, update_.loss_scale(), [this](Batch const& placed) { submit(placed); });
  status_.fetch_sum();
  if (update_.way() == Update::Way::guarded) update(options.lr, status_.refusal());
  auto result = agreed(batch);
  if (update_.way() == Update::Way::by_range) update(options.lr);
  if (update_.way() == Update::Way::by_decision) result.skipped = !update_if_admitted(options.lr);
  if (!update_.finite())
    throw bad_gradient(batch.step, str("in the shard of rank ", parts_.world.all().rank()),
                       own_gradients());
  if (!graph_.keeps()) gather_ahead(-1);  // what the next forward pass begins with
  return result;
}

void Fsdp::hash_replicas(bool wanted) {
  hashes_ = {};
  if (!wanted) return;
  parts_.recorder.enter(Phase::comm_exposed);
  for (int unit = 0; unit < plan_.units(); ++unit)
    if (!plan_.rotates(unit)) parameters_.unshard(unit);
  parts_.recorder.enter(Phase::optimizer);  // whose state it is
  hashes_ = ReplicaHashes(replicas());
}

void Fsdp::submit(Batch const& batch) {
  status_.clear();
  auto const micros = split(batch, plan_.micro_batches);
  for (int i = 0; i < plan_.micro_batches; ++i) {
    auto const& micro = micros[static_cast<std::size_t>(i)];
    auto const logits = forward(micro);
    auto const loss = cross_entropy(logits, micro.labels, update_.loss_scale());
    status_.note(loss, tape_);
    if (i + 1 == plan_.micro_batches) send_control();
    backward(loss.gradient, i, batch.step);
  }

  parts_.recorder.enter(Phase::comm_exposed);
  status_sum_.wait_on_stream();
  if (graph_.keeps()) gradients_.finish(0);  // the last one
}

at::Tensor Fsdp::forward(Batch const& micro) {
  auto const context = graph_.context_of(micro);
  at::Tensor x = micro.inputs;
  for (int unit = 0; unit < plan_.units(); ++unit) {
    unshard_for_forward(unit);
    for (int block = plan_.unit(unit).first_block; block <= plan_.unit(unit).last_block; ++block)
      x = tape_.forward(
          block, x,
          {parameters_.of_block(block), buffers_[static_cast<std::size_t>(block)], context});
    if (!plan_.stays_after_forward(unit)) parameters_.reshard(unit);
  }
  return x;
}

void Fsdp::backward(at::Tensor gradient, int micro_batch, std::int64_t step) {
  bool const last = micro_batch + 1 == plan_.micro_batches;
  auto const accumulated = micro_batch == 0 ? GradWrite::overwrite : GradWrite::accumulate;
  // Whole gradients add up where they land; others are summed over ranks first.
  auto const write = plan_.whole_gradients ? accumulated : GradWrite::overwrite;
  for (int unit = 0; unit < plan_.lenders; ++unit) gradients_.open(unit);
  for (int unit = plan_.units() - 1; unit >= 0; --unit) {
    unshard_for_backward(unit);
    if (!plan_.lends(unit)) gradients_.open(unit);
    parts_.recorder.enter(Phase::backward);
    for (int block = plan_.unit(unit).last_block; block >= plan_.unit(unit).first_block; --block)
      gradient = tape_.backward(block, gradient, gradients_.of_block(block), write);
    if (!plan_.whole_gradients)
      gradients_.reduce_scatter(unit, accumulated, step);
    else if (last)
      gradients_.reduce_scatter(unit, GradWrite::overwrite, step);
    if (!plan_.overlap) {
      parts_.recorder.enter(Phase::comm_exposed);
      gradients_.finish(unit);
    }
    if (!plan_.stays_after_backward(unit, last)) parameters_.reshard(unit);
  }
}

void Fsdp::unshard_for_forward(int unit) {
  parts_.recorder.enter(Phase::comm_exposed);
  parameters_.unshard(unit);
  gather_ahead(unit);
  parts_.recorder.enter(Phase::forward);
}

/// Units that share slots are gathered as far ahead as slots reach, the others without delay.
void Fsdp::gather_ahead(int unit) {
  if (!plan_.overlap || plan_.prefetch == 0) return;
  for (int next = unit + 1; next < plan_.units(); ++next) {
    if (plan_.rotates(next) && next - unit > plan_.prefetch) return;
    parameters_.gather(next);
  }
}

void Fsdp::unshard_for_backward(int unit) {
  parts_.recorder.enter(Phase::comm_exposed);
  parameters_.unshard(unit);
  if (!plan_.overlap) return;
  for (int next = unit - 1; next >= std::max(unit - plan_.prefetch, 0); --next)
    parameters_.gather(next);
}

void Fsdp::send_control() {
  status_.seal(fingerprint(parts_.world.all().collectives(), hashes_));
  status_sum_ = parts_.world.all().all_reduce(status_.memory());
  if (!plan_.overlap) status_sum_.wait_on_stream();
}

StepResult Fsdp::agreed(Batch const& batch) {
  auto const [result, finite, alike] =
      status_.result(batch, parts_.world.all().size(), plan_.micro_batches);
  if (!alike) refuse_difference(parts_.world.all(), hashes_, batch.step);
  if (finite) return result;
  int block = status_.first_bad_block();
  if (!batch.inputs.is_cpu()) {  // nothing was updated: the same pass again shows the block
    forward(batch);
    block = tape_.first_non_finite();
  }
  refuse_loss(parts_.model, parts_.world.all(), batch.step, block);
}

bool Fsdp::update_if_admitted(double lr) {
  gradients_.finish(0);  // the last one
  parts_.recorder.enter(Phase::optimizer);
  if (!update_.admit(gradient_norm(gradients_.shards(), parts_.world.all()))) return false;
  update(lr);
  return true;
}

void Fsdp::update(double lr, std::optional<at::Tensor> const& refusal) {
  update_.begin();
  for (int unit = plan_.units() - 1; unit >= 0; --unit) {
    parts_.recorder.enter(Phase::comm_exposed);
    gradients_.finish(unit);
    parts_.recorder.enter(Phase::optimizer);
    update_unit(unit, lr, refusal);
  }
}

void Fsdp::update_unit(int unit, double lr, std::optional<at::Tensor> const& refusal) {
  for (std::size_t c = 0; c < plan_.unit(unit).chunks.size(); ++c) {
    auto const& chunk = plan_.unit(unit).chunks[c];
    update_.apply({chunk.owned, chunk.owned + chunk.shard}, parameters_.shard(unit, c),
                  gradients_.shard(unit, c), lr, refusal);
  }
}

NamedTensors Fsdp::own_gradients() const {
  NamedTensors own;
  for (int unit = 0; unit < plan_.units(); ++unit)
    for (std::size_t c = 0; c < plan_.unit(unit).chunks.size(); ++c) {
      auto const& chunk = plan_.unit(unit).chunks[c];
      auto const first = parts_.world.all().rank() * chunk.shard;
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

at::Tensor Fsdp::predict(at::Tensor const& images, Buffers const& statistics) {
  auto const context = parts_.evaluation();
  at::Tensor x = images;
  for (int unit = 0; unit < plan_.units(); ++unit) {
    parameters_.unshard(unit);
    gather_ahead(unit);
    for (int block = plan_.unit(unit).first_block; block <= plan_.unit(unit).last_block; ++block)
      x = tape_.infer(
          block, x,
          {parameters_.of_block(block), statistics[static_cast<std::size_t>(block)], context});
    if (plan_.rotates(unit)) parameters_.reshard(unit);
  }
  return x;
}

NamedTensors Fsdp::replicas() const {
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

State Fsdp::state() {
  auto const type = plan_.types.master;
  State state{.of_parameters = {{State::parameters, type,
                                 parameters_.pieces([this](int unit, std::size_t c) {
                                   return parameters_.shard(unit, c);
                                 })}},
              .buffers = {{parts_.world.all().rank(), buffers_}},
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
