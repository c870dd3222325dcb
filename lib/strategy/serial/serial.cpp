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
  auto const of_group = static_cast<std::size_t>(config_.workers_of_group());
  for (std::size_t first = 0; first < workers.size(); first += of_group) {
    Group const group{static_cast<int>(first), std::span(workers).subspan(first, of_group),
                      first == 0 ? model_.sum() : model_.group()};
    if (config_.accumulate == Accumulate::sharded)
      accumulate_sharded(group);
    else
      accumulate_unsharded(group);
    if (first > 0) model_.sum().flat().add_(group.sum.flat());
  }
  model_.sums().finish(model_.sum().flat(), batch.step);
  model_.status().seal(model_.status().fingerprint(group().collectives()));
}

void Serial::accumulate_unsharded(Group const& group) {
  for (std::size_t i = 0; i < group.shares.size(); ++i) {
    auto const worker = group.first_worker + static_cast<int>(i);
    auto& gradients = i == 0 ? group.sum : model_.own();
    pass(worker, group.shares[i], config_.micro_batches, gradients);
    model_.sums().add(static_cast<int>(i), gradients.flat(), group.sum.flat(),
                      group.shares[i].step);
  }
}

void Serial::accumulate_sharded(Group const& group) {
  std::vector<std::vector<Batch>> micros;
  for (auto const& share : group.shares) micros.push_back(split(share, config_.micro_batches));
  for (std::size_t micro = 0; micro < micros.front().size(); ++micro) {
    auto& total = micro == 0 ? group.sum : model_.micro();
    for (std::size_t i = 0; i < micros.size(); ++i) {
      pass(group.first_worker + static_cast<int>(i), micros[i][micro], 1,
           i == 0 ? total : model_.own());
      if (i > 0) total.flat().add_(model_.own().flat());
    }
    if (micro > 0) group.sum.flat().add_(total.flat());
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
