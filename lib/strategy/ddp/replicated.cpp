#include "strategy/ddp/replicated.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>

#include "strategy/codes/compressed.hpp"

namespace stratagem {

using trace::Phase;

Replicated::Replicated(DdpPlan plan, StrategyParts const& parts, Communicator& group)
    : plan_(std::move(plan)),
      parts_(parts),
      group_(group),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      reduced_(
          parts.allocate(gpu::MemoryCategory::gradients, status_room + replica_.layout().size())),
      status_(reduced_.narrow(0, 0, status_room)),
      store_(replica_, reduced_.narrow(0, status_room, replica_.layout().size())),
      sums_(make_gradient_sums(plan_, parts, replica_.layout(), reduced_, group)),
      update_(optimizer_of(plan_.config.compression, parts.optimizer), parts.precision,
              group.size(), plan_.config.micro_batches, all_elements(replica_.layout()),
              parts.device) {}

void Replicated::begin_step(std::int64_t step, bool /*kept*/) {
  step_ = step;
}

void Replicated::begin_pass(int number) {
  store_.write(number == 0 ? GradWrite::overwrite : GradWrite::accumulate);
  sums_begin_ = plan_.config.overlap && number + 1 == plan_.config.micro_batches;
  launched_ = awaited_ = 0;
}

void Replicated::landed(int block) {
  if (!sums_begin_) return;
  sums_->advance();
  while (launched_ < buckets().size() && buckets()[launched_].first_block == block) launch();
}

void Replicated::end_passes() {
  while (launched_ < buckets().size()) launch();
}

void Replicated::launch() {
  // Block 0 ends the backward pass; its bucket is the last one.
  bool const last = launched_ + 1 == buckets().size();
  if (last) status_.seal(status_.fingerprint(group_.collectives()));
  sums_->begin(launched_++, store_.flat(), step_);
  if (last && !sums_->takes_status()) status_sum_ = group_.all_reduce(status_.memory());
}

void Replicated::await() {
  parts_.recorder.enter(Phase::comm_exposed);
  sums_->finish(awaited_++);
}

void Replicated::await_sums() {
  while (awaited_ < buckets().size()) await();
}

void Replicated::await_status() {
  await_sums();
  if (!sums_->takes_status()) status_sum_.wait_on_stream();
}

void Replicated::apply(double lr, std::optional<at::Tensor> const& refusal) {
  update_.begin();
  if (awaited_ == buckets().size()) return apply(all(), lr, refusal);
  while (awaited_ < buckets().size()) {
    await();
    parts_.recorder.enter(Phase::optimizer);
    apply(buckets()[awaited_ - 1].range, lr, refusal);
  }
}

void Replicated::apply(FlatRange range, double lr, std::optional<at::Tensor> const& refusal) {
  auto const gradients = store_.flat().narrow(0, range.begin, range.size());
  update_.apply(range, replica_, gradients, lr, refusal);
}

void Replicated::refuse_gradient(std::int64_t step) const {
  throw AgreedError(bad_gradient(step, "summed over all ranks", replica_.views(store_.flat(), "")));
}

NamedTensors Replicated::replicas() const {
  auto tensors = replica_.views(replica_.flat(), "parameters/");
  for (auto const& [kind, flat] : update_.state())
    std::ranges::move(replica_.views(flat, kind + "/"), std::back_inserter(tensors));
  return tensors;
}

State Replicated::state() {
  auto of_parameters = replica_.state(update_.state());
  std::ranges::move(sums_->state(), std::back_inserter(of_parameters));
  return {.of_parameters = std::move(of_parameters),
          .counters = update_.counters(),
          .replicas = replicas()};
}

}  // namespace stratagem
