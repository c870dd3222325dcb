#include "strategy/serial/serial.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "strategy/shared/compressed.hpp"
#include "strategy/shared/cross_entropy.hpp"
#include "strategy/shared/micro_batches.hpp"
#include "strategy/shared/step_status.hpp"

namespace stratagem {

using trace::Phase;

Serial::Serial(SerialConfig const& config, StrategyParts const& parts)
    : config_(config),
      parts_(parts),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed,
               config.parameter_compression),
      sums_(make_worker_sums(config, parts, replica_.layout())),
      status_(at::zeros({status_room}, replica_.flat().options())),
      tape_(parts.model.blocks, parts.recompute),
      update_(optimizer_of(config.compression, parts.optimizer), parts.precision,
              config.emulate_ranks, config.micro_batches, all_elements(replica_.layout()),
              parts.device),
      graph_(parts) {
  for (int worker = 0; worker < config.emulate_ranks; ++worker)
    buffers_.push_back(make_buffers(parts.model, parts.device, parts.precision.compute));
  sum_ = make_gradients();
  if (config.emulate_ranks > 1) own_ = make_gradients();
  if (config.sums_micro_batches()) micro_ = make_gradients();
}

Serial::Gradients Serial::make_gradients() const {
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts_.device);
  Gradients gradients{at::zeros_like(replica_.flat()), {}};
  for (int block = 0; block < tape_.blocks(); ++block)
    gradients.views.push_back(views_of(gradients.flat, replica_.layout(), block));
  return gradients;
}

StepResult Serial::step(Batch const& batch, StepOptions const& options) {
  status_.begin(options);
  if (graph_.keeps()) status_.tell(0);
  graph_.run(batch, update_.loss_scale(), [this](Batch const& placed) { submit(placed); });
  status_.fetch_sum();
  parts_.recorder.enter(Phase::optimizer);
  if (update_.way() == Update::Way::guarded) update_all(options.lr, status_.refusal());
  auto [result, finite, _] =
      status_.result(batch, 1, config_.emulate_ranks * config_.micro_batches);
  if (!finite) find_bad_loss(batch);
  if (update_.way() == Update::Way::by_decision)
    result.skipped = !update_.admit(gradient_norm({&sum_.flat, 1}));
  if (update_.way() != Update::Way::guarded && !result.skipped) update_all(options.lr);
  if (!update_.finite())
    throw AgreedError(
        bad_gradient(batch.step, "summed over all ranks", replica_.views(sum_.flat, "")));
  return result;
}

void Serial::update_all(double lr, std::optional<at::Tensor> const& refusal) {
  update_.begin();
  update_.apply(all(), replica_, sum_.flat, lr, refusal);
}

void Serial::submit(Batch const& batch) {
  status_.clear();
  auto const workers = split(batch, config_.emulate_ranks);
  if (config_.accumulate == Accumulate::sharded)
    accumulate_sharded(workers);
  else
    accumulate_unsharded(workers);
  status_.seal(0);
}

void Serial::accumulate_unsharded(std::vector<Batch> const& workers) {
  for (std::size_t worker = 0; worker < workers.size(); ++worker) {
    auto const& gradients = worker == 0 ? sum_ : own_;
    auto write = GradWrite::overwrite;
    for (auto const& micro : split(workers[worker], config_.micro_batches)) {
      pass(static_cast<int>(worker), micro, gradients, write);
      write = GradWrite::accumulate;
    }
    sums_->add(static_cast<int>(worker), gradients.flat, sum_.flat, workers.front().step);
  }
  sums_->finish(sum_.flat, workers.front().step);
}

void Serial::accumulate_sharded(std::vector<Batch> const& workers) {
  std::vector<std::vector<Batch>> micros;
  for (auto const& batch : workers) micros.push_back(split(batch, config_.micro_batches));
  for (std::size_t i = 0; i < micros.front().size(); ++i) {
    auto const& total = i == 0 ? sum_ : micro_;
    for (std::size_t worker = 0; worker < workers.size(); ++worker) {
      auto const& gradients = worker == 0 ? total : own_;
      pass(static_cast<int>(worker), micros[worker][i], gradients, GradWrite::overwrite);
      if (worker > 0) total.flat.add_(own_.flat);
    }
    if (i > 0) sum_.flat.add_(micro_.flat);
  }
}

at::Tensor Serial::forward(int worker, Batch const& micro) {
  return stratagem::forward(replica_, buffers_[static_cast<std::size_t>(worker)], tape_,
                            micro.inputs, graph_.context_of(micro));
}

void Serial::pass(int worker, Batch const& micro, Gradients const& gradients, GradWrite write) {
  parts_.recorder.enter(Phase::forward);
  auto const logits = forward(worker, micro);
  auto const loss = cross_entropy(logits, micro.labels, update_.loss_scale());
  status_.note(loss, tape_);
  if (status_.knows_refusal()) refuse_loss(micro.step, worker, status_.first_bad_block());

  parts_.recorder.enter(Phase::backward);
  at::Tensor gradient = loss.gradient;
  for (int block = tape_.blocks() - 1; block >= 0; --block)
    gradient =
        tape_.backward(block, gradient, gradients.views[static_cast<std::size_t>(block)], write);
}

void Serial::find_bad_loss(Batch const& batch) {
  auto const workers = split(batch, config_.emulate_ranks);
  for (std::size_t worker = 0; worker < workers.size(); ++worker)
    for (auto const& micro : split(workers[worker], config_.micro_batches)) {
      auto const logits = forward(static_cast<int>(worker), micro);
      auto const loss = cross_entropy(logits, micro.labels).loss.item<double>();
      if (!std::isfinite(loss))
        refuse_loss(micro.step, static_cast<int>(worker), tape_.first_non_finite());
    }
  refuse_loss(batch.step, 0, -1);
}

void Serial::refuse_loss(std::int64_t step, int worker, int block) const {
  auto const where = block < 0
                         ? std::string("the loss itself")
                         : "block " + parts_.model.blocks[static_cast<std::size_t>(block)]->name();
  throw AgreedError(ExitCode::non_finite,
                    str("the loss is not finite at step ", step, " on rank ", worker),
                    "first in the output of " + where, "lower optimizer.lr or look at the data");
}

State Serial::state() {
  State state{.of_parameters = replica_.state(update_.state()), .counters = update_.counters()};
  std::ranges::move(sums_->state(), std::back_inserter(state.of_parameters));
  for (std::size_t worker = 0; worker < buffers_.size(); ++worker)
    state.buffers.emplace(static_cast<int>(worker), buffers_[worker]);
  return state;
}

}  // namespace stratagem
