#include "strategy/ddp/ddp.hpp"

#include <algorithm>
#include <iterator>

#include <ATen/ATen.h>

#include "strategy/shared/compressed.hpp"
#include "strategy/shared/cross_entropy.hpp"
#include "strategy/shared/micro_batches.hpp"

namespace stratagem {

using trace::Phase;

Ddp::Ddp(DdpPlan plan, StrategyParts const& parts)
    : plan_(std::move(plan)),
      parts_(parts),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      buffers_(make_buffers(parts.model, parts.device, parts.precision.compute)),
      reduced_(
          parts.allocate(gpu::MemoryCategory::gradients, status_room + replica_.layout().size())),
      status_(reduced_.narrow(0, 0, status_room)),
      gradients_(reduced_.narrow(0, status_room, replica_.layout().size())),
      coded_(make_gradient_sums(plan_, parts, replica_.layout())),
      tape_(parts.model.blocks, parts.recompute),
      update_(optimizer_of(plan_.config.compression, parts.optimizer), parts.precision,
              parts.world.all().size(), plan_.config.micro_batches, all_elements(replica_.layout()),
              parts.device),
      graph_(parts) {
  for (int block = 0; block < tape_.blocks(); ++block)
    gradient_views_.push_back(views_of(gradients_, replica_.layout(), block));
}

StepResult Ddp::step(Batch const& batch, StepOptions const& options) {
  step_ = batch.step;
  lr_ = options.lr;
  hash_replicas(options.compare_replicas);
  status_.begin(options);
  if (graph_.keeps()) status_.tell(fingerprint(parts_.world.all().collectives(), hashes_));
  graph_.run(batch, update_.loss_scale(), [this](Batch const& placed) { submit(placed); });
  status_.fetch_sum();
  if (update_.way() == Update::Way::guarded) update_all(options.lr, status_.refusal());
  auto result = agreed(batch);
  if (update_.way() == Update::Way::by_decision) result.skipped = !update_if_admitted(options.lr);
  if (!update_.finite())
    throw AgreedError(
        bad_gradient(batch.step, "summed over all ranks", replica_.views(gradients_, "")));
  return result;
}

void Ddp::submit(Batch const& batch) {
  status_.clear();
  auto const micros = split(batch, plan_.config.micro_batches);
  for (std::size_t i = 0; i < micros.size(); ++i) {
    parts_.recorder.enter(Phase::forward);
    auto const logits = forward(micros[i]);
    auto const loss = cross_entropy(logits, micros[i].labels, update_.loss_scale());
    status_.note(loss, tape_);
    parts_.recorder.enter(Phase::backward);
    backward(loss.gradient, i == 0 ? GradWrite::overwrite : GradWrite::accumulate,
             i + 1 == micros.size());
  }

  auto const& buckets = plan_.buckets.buckets;
  if (!plan_.config.overlap)
    for (std::size_t i = 0; i < buckets.size(); ++i) launch(i);
  if (update_.way() == Update::Way::by_range) update_.begin();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    parts_.recorder.enter(Phase::comm_exposed);
    await(i);
    parts_.recorder.enter(Phase::optimizer);
    if (update_.way() == Update::Way::by_range) update(buckets[i].range, lr_);
  }
  works_.clear();
}

void Ddp::hash_replicas(bool wanted) {
  hashes_ = {};
  if (!wanted) return;
  parts_.recorder.enter(Phase::optimizer);  // whose state it is
  hashes_ = ReplicaHashes(replicas());
}

at::Tensor Ddp::forward(Batch const& micro) {
  return stratagem::forward(replica_, buffers_, tape_, micro.inputs, graph_.context_of(micro));
}

void Ddp::backward(at::Tensor gradient, GradWrite write, bool last_micro_batch) {
  auto const& buckets = plan_.buckets.buckets;
  std::size_t next = 0;
  for (int block = tape_.blocks() - 1; block >= 0; --block) {
    gradient =
        tape_.backward(block, gradient, gradient_views_[static_cast<std::size_t>(block)], write);
    if (!plan_.config.overlap || !last_micro_batch) continue;
    if (coded_) coded_->advance();
    for (; next < buckets.size() && buckets[next].first_block == block; ++next) launch(next);
  }
}

void Ddp::launch(std::size_t number) {
  // Block 0 ends the backward pass; its bucket takes the status in front of it along.
  auto const& bucket = plan_.buckets.buckets[number];
  bool const last = bucket.range.begin == 0;
  if (last) status_.seal(fingerprint(parts_.world.all().collectives(), hashes_));
  if (coded_) {
    coded_->begin(number, gradients_, step_);
    if (last) works_.push_back(parts_.world.all().all_reduce(status_.memory()));
    return;
  }
  auto const begin = last ? 0 : status_room + bucket.range.begin;
  works_.push_back(parts_.world.all().all_reduce(
      reduced_.narrow(0, begin, status_room + bucket.range.end - begin)));
}

void Ddp::await(std::size_t bucket) {
  if (coded_) coded_->finish(bucket);
  if (!coded_)
    works_[bucket].wait_on_stream();
  else if (bucket + 1 == plan_.buckets.buckets.size())
    works_.front().wait_on_stream();
}

void Ddp::update(FlatRange range, double lr, std::optional<at::Tensor> const& refusal) {
  update_.apply(range, replica_, gradients_.narrow(0, range.begin, range.size()), lr, refusal);
}

void Ddp::update_all(double lr, std::optional<at::Tensor> const& refusal) {
  update_.begin();
  update(all(), lr, refusal);
}

bool Ddp::update_if_admitted(double lr) {
  if (!update_.admit(gradient_norm({&gradients_, 1}))) return false;
  update_all(lr);
  return true;
}

StepResult Ddp::agreed(Batch const& batch) {
  auto const [result, finite, alike] =
      status_.result(batch, parts_.world.all().size(), plan_.config.micro_batches);
  if (!alike) refuse_difference(parts_.world.all(), hashes_, batch.step);
  if (finite) return result;
  int block = status_.first_bad_block();
  if (!batch.inputs.is_cpu()) {  // nothing was updated: the same pass again shows the block
    forward(batch);
    block = tape_.first_non_finite();
  }
  refuse_loss(parts_.model, parts_.world.all(), batch.step, block);
}

NamedTensors Ddp::replicas() const {
  auto tensors = replica_.views(replica_.flat(), "parameters/");
  for (auto const& [kind, flat] : update_.state()) {
    auto const views = replica_.views(flat, kind + "/");
    tensors.insert(tensors.end(), views.begin(), views.end());
  }
  return tensors;
}

State Ddp::state() {
  auto of_parameters = replica_.state(update_.state());
  if (coded_) std::ranges::move(coded_->state(), std::back_inserter(of_parameters));
  return {.of_parameters = std::move(of_parameters),
          .buffers = {{parts_.world.all().rank(), buffers_}},
          .counters = update_.counters(),
          .replicas = replicas()};
}

}  // namespace stratagem
