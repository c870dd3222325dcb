#include "strategy/serial/serial.hpp"

#include <cmath>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/pass/micro_batches.hpp"

namespace stratagem {

Serial::Serial(SerialConfig const& config, StrategyParts const& parts)
    : Synchronous(parts, parts.world.all(),
                  {.passes = config.emulate_ranks * config.micro_batches}),
      config_(config),
      model_(config, parts),
      passes_(parts) {
  for (int worker = 0; worker < config.emulate_ranks; ++worker)
    buffers_.push_back(make_buffers(parts.model, parts.device, parts.precision.compute));
}

void Serial::submit(Batch const& batch) {
  auto const workers = split(batch, config_.emulate_ranks);
  if (config_.accumulate == Accumulate::sharded)
    accumulate_sharded(workers);
  else
    accumulate_unsharded(workers);
  model_.status().seal(model_.status().fingerprint(group().collectives()));
}

void Serial::accumulate_unsharded(std::vector<Batch> const& workers) {
  auto const& sum = model_.sum().flat();
  auto const step = workers.front().step;
  for (std::size_t worker = 0; worker < workers.size(); ++worker) {
    auto& gradients = worker == 0 ? model_.sum() : model_.own();
    pass(static_cast<int>(worker), workers[worker], config_.micro_batches, gradients);
    model_.sums().add(static_cast<int>(worker), gradients.flat(), sum, step);
  }
  model_.sums().finish(sum, step);
}

void Serial::accumulate_sharded(std::vector<Batch> const& workers) {
  std::vector<std::vector<Batch>> micros;
  for (auto const& batch : workers) micros.push_back(split(batch, config_.micro_batches));
  for (std::size_t i = 0; i < micros.front().size(); ++i) {
    auto& total = i == 0 ? model_.sum() : model_.micro();
    for (std::size_t worker = 0; worker < workers.size(); ++worker) {
      pass(static_cast<int>(worker), micros[worker][i], 1, worker == 0 ? total : model_.own());
      if (worker > 0) total.flat().add_(model_.own().flat());
    }
    if (i > 0) model_.sum().flat().add_(total.flat());
  }
}

void Serial::pass(int worker, Batch const& share, int micro_batches, ReplicaGradients& gradients) {
  auto& status = model_.status();
  passes_.run_all(
      gradients, buffers_[static_cast<std::size_t>(worker)], share, micro_batches,
      [this](Batch const& micro) { return context_of(micro); },
      [&](CrossEntropy const& loss) {
        status.note(loss, passes_.kept());
        if (status.knows_refusal()) refuse_loss_of(worker, share.step, status.first_bad_block());
      });
}

void Serial::refuse_loss(Batch const& batch) {
  auto const workers = split(batch, config_.emulate_ranks);
  for (std::size_t worker = 0; worker < workers.size(); ++worker)
    for (auto const& micro : split(workers[worker], config_.micro_batches)) {
      auto const logits =
          passes_.forward(model_.sum(), buffers_[worker], micro.inputs, context_of(micro));
      auto const loss = cross_entropy(logits, micro.labels).loss.item<double>();
      if (!std::isfinite(loss))
        refuse_loss_of(static_cast<int>(worker), micro.step, passes_.kept().first_non_finite());
    }
  refuse_loss_of(0, batch.step, -1);
}

void Serial::refuse_loss_of(int worker, std::int64_t step, int block) const {
  auto const where = block < 0
                         ? std::string("the loss itself")
                         : "block " + parts().model.blocks[static_cast<std::size_t>(block)]->name();
  throw AgreedError(ExitCode::non_finite,
                    str("the loss is not finite at step ", step, " on rank ", worker),
                    "first in the output of " + where, "lower optimizer.lr or look at the data");
}

State Serial::state() {
  auto state = model_.state();
  for (std::size_t worker = 0; worker < buffers_.size(); ++worker)
    state.buffers.emplace(static_cast<int>(worker), buffers_[worker]);
  return state;
}

}  // namespace stratagem
