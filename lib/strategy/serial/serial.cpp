#include "strategy/serial/serial.hpp"

#include <cmath>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "strategy/cross_entropy.hpp"
#include "strategy/micro_batches.hpp"

namespace stratagem {

using trace::Phase;

Serial::Serial(SerialConfig const& config, StrategyParts const& parts)
    : config_(config),
      parts_(parts),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      tape_(parts.model.blocks, parts.recompute),
      update_(parts.optimizer, parts.precision, config.emulate_ranks, config.micro_batches,
              replica_) {
  for (int worker = 0; worker < config.emulate_ranks; ++worker)
    buffers_.push_back(make_buffers(parts.model, parts.device, parts.precision.compute));
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
  sum_ = at::zeros_like(replica_.flat());
  own_ = config.emulate_ranks > 1 ? at::zeros_like(sum_) : sum_;
  for (int block = 0; block < tape_.blocks(); ++block) {
    sum_views_.push_back(views_of(sum_, replica_.layout(), block));
    own_views_.push_back(views_of(own_, replica_.layout(), block));
  }
}

StepResult Serial::step(Batch const& batch, StepOptions const& options) {
  int const last = tape_.blocks() - 1;
  StepResult result{.samples = batch.labels.numel(), .stop = options.request_stop};
  auto const workers = split(batch, config_.emulate_ranks);
  for (std::size_t worker = 0; worker < workers.size(); ++worker) {
    auto const& gradients = worker == 0 ? sum_views_ : own_views_;
    auto landing = Landing::store;
    for (auto const& micro : split(workers[worker], config_.micro_batches)) {
      Context const context{.training = true,
                            .dropout = parts_.dropout,
                            .seed = parts_.seed,
                            .step = batch.step,
                            .first_slot = micro.first_slot};
      parts_.recorder.enter(Phase::forward);
      at::Tensor x = micro.images;
      for (int block = 0; block <= last; ++block) {
        auto const& buffers = buffers_[worker][static_cast<std::size_t>(block)];
        x = tape_.forward(block, x, {replica_.parameters(block), buffers, context});
      }
      auto const [loss, correct, start] = cross_entropy(x, micro.labels, update_.loss_scale());
      auto const value = loss.item<double>();
      if (!std::isfinite(value))
        refuse_loss(batch.step, static_cast<int>(worker), tape_.first_non_finite());
      result.loss += value;
      result.correct += correct.item<std::int64_t>();

      parts_.recorder.enter(Phase::backward);
      at::Tensor gradient = start;
      for (int block = last; block >= 0; --block)
        gradient =
            tape_.backward(block, gradient, gradients[static_cast<std::size_t>(block)], landing);
      landing = Landing::add;
    }
    if (worker > 0) sum_.add_(own_);
  }
  result.loss /= config_.emulate_ranks * config_.micro_batches;

  parts_.recorder.enter(Phase::optimizer);
  if (update_.by_range())
    update_.range({0, replica_.layout().size()}, sum_, options.lr);
  else
    result.skipped = !update_.whole(sum_, options.lr);
  return result;
}

void Serial::refuse_loss(std::int64_t step, int worker, int block) const {
  auto const where = block < 0
                         ? std::string("the loss itself")
                         : "block " + parts_.model.blocks[static_cast<std::size_t>(block)]->name();
  throw AgreedError(ExitCode::non_finite,
                    str("the loss is not finite at step ", step, " on rank ", worker),
                    "first in the output of " + where, "lower optimizer.lr or look at the data");
}

at::Tensor Serial::predict(at::Tensor const& images) {
  return infer(replica_, evaluation_buffers_, tape_, images);
}

NamedTensors Serial::gather_momentum() {
  return update_.momentum().defined() ? replica_.named(update_.momentum()) : NamedTensors{};
}

void Serial::load(std::map<std::string, at::Tensor> const& tensors) {
  for (auto& buffers : buffers_) replica_.load(tensors, buffers);
}

}  // namespace stratagem
