#include "strategy/ddp/ddp.hpp"

#include <cmath>
#include <optional>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "gpu/memory.hpp"
#include "strategy/cross_entropy.hpp"
#include "strategy/micro_batches.hpp"
#include "strategy/plan.hpp"

namespace stratagem {

using trace::Phase;

Ddp::Ddp(DdpConfig const& config, StrategyParts const& parts)
    : config_(config),
      parts_(parts),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      plan_(plan_buckets(config, replica_.layout(),
                         static_cast<std::int64_t>(replica_.flat().element_size()))),
      buffers_(make_buffers(parts.model, parts.device, parts.precision.compute)),
      tape_(parts.model.blocks, parts.recompute),
      update_(parts.optimizer, parts.precision, parts.communicator.size(), config.micro_batches,
              replica_) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
  reduced_ = parts.communicator.allocate(control_room + replica_.layout().size(),
                                         replica_.flat().scalar_type());
  control_ = reduced_.narrow(0, 0, Control::fields);
  gradients_ = reduced_.narrow(0, control_room, replica_.layout().size());
  for (int block = 0; block < tape_.blocks(); ++block)
    gradient_views_.push_back(views_of(gradients_, replica_.layout(), block));
}

StepResult Ddp::step(Batch const& batch, StepOptions const& options) {
  control_.zero_();
  if (options.request_stop) control_[Control::stop].fill_(1);
  first_bad_block_ = -1;

  auto const micros = split(batch, config_.micro_batches);
  for (std::size_t i = 0; i < micros.size(); ++i) {
    parts_.recorder.enter(Phase::forward);
    auto const logits = forward(micros[i]);
    auto const [loss, correct, gradient] =
        cross_entropy(logits, micros[i].labels, update_.loss_scale());
    note(loss, correct);
    parts_.recorder.enter(Phase::backward);
    backward(gradient, i == 0 ? Landing::store : Landing::add, i + 1 == micros.size());
  }

  if (!config_.overlap)
    for (auto const& bucket : plan_.buckets) launch(bucket);
  for (std::size_t i = 0; i < works_.size(); ++i) {
    parts_.recorder.enter(Phase::comm_exposed);
    works_[i].wait_on_stream();
    parts_.recorder.enter(Phase::optimizer);
    if (update_.by_range()) update_.range(plan_.buckets[i].range, gradients_, options.lr);
  }
  works_.clear();

  auto result = agreed(batch);
  if (!update_.by_range()) result.skipped = !update_.whole(gradients_, options.lr);
  return result;
}

at::Tensor Ddp::forward(Batch const& micro) {
  Context const context{.training = true,
                        .dropout = parts_.dropout,
                        .seed = parts_.seed,
                        .step = micro.step,
                        .first_slot = micro.first_slot};
  at::Tensor x = micro.images;
  for (int block = 0; block < tape_.blocks(); ++block)
    x = tape_.forward(
        block, x, {replica_.parameters(block), buffers_[static_cast<std::size_t>(block)], context});
  return x;
}

void Ddp::backward(at::Tensor gradient, Landing landing, bool last_micro_batch) {
  auto next = plan_.buckets.begin();
  for (int block = tape_.blocks() - 1; block >= 0; --block) {
    gradient =
        tape_.backward(block, gradient, gradient_views_[static_cast<std::size_t>(block)], landing);
    if (!config_.overlap || !last_micro_batch) continue;
    for (; next != plan_.buckets.end() && next->first_block == block; ++next) launch(*next);
  }
}

void Ddp::launch(Bucket const& bucket) {
  // Block 0 ends the backward pass; its bucket takes the control record in front of it along.
  auto const begin = bucket.range.begin == 0 ? 0 : control_room + bucket.range.begin;
  works_.push_back(parts_.communicator.all_reduce(
      reduced_.narrow(0, begin, control_room + bucket.range.end - begin)));
}

void Ddp::note(at::Tensor const& loss, at::Tensor const& correct) {
  control_[Control::loss].add_(loss);
  control_[Control::correct].add_(correct);
  control_[Control::not_finite].add_(loss.isfinite().logical_not());
  if (loss.is_cpu() && first_bad_block_ < 0 && !std::isfinite(loss.item<double>()))
    first_bad_block_ = tape_.first_non_finite();
}

StepResult Ddp::agreed(Batch const& batch) {
  auto const sums = control_.to(at::kCPU, at::kDouble);
  auto const* of = sums.data_ptr<double>();
  if (of[Control::not_finite] > 0) refuse_loss(batch);
  int const ranks = parts_.communicator.size();
  return {.loss = of[Control::loss] / (ranks * config_.micro_batches),
          .correct = static_cast<std::int64_t>(of[Control::correct]),
          .samples = batch.labels.numel() * ranks,
          .stop = of[Control::stop] > 0};
}

void Ddp::refuse_loss(Batch const& batch) {
  // On a GPU nothing was updated yet: the same pass once more shows the block.
  if (!batch.images.is_cpu()) {
    forward(batch);
    first_bad_block_ = tape_.first_non_finite();
  }
  std::optional<Error> own;
  if (first_bad_block_ >= 0)
    own = Error(
        ExitCode::non_finite,
        str("the loss is not finite at step ", batch.step, " on rank ", parts_.communicator.rank()),
        "first in the output of block " +
            parts_.model.blocks[static_cast<std::size_t>(first_bad_block_)]->name(),
        "lower optimizer.lr or look at the data");
  agree(parts_.communicator, own);
  throw AgreedError(ExitCode::non_finite, str("the loss is not finite at step ", batch.step),
                    "though every block's output is", "look at the labels");
}

Buffers Ddp::averaged_buffers() {
  std::vector<at::Tensor> flat;
  for (auto const& of_block : buffers_)
    for (auto const& buffer : of_block) flat.push_back(buffer.flatten().to(at::kDouble));
  if (flat.empty()) return buffers_;
  auto const own = at::cat(flat);
  auto const all = at::empty({own.numel() * parts_.communicator.size()}, own.options());
  parts_.communicator.all_gather(all, own).wait_on_stream();

  std::vector<Buffers> workers;
  std::int64_t offset = 0;
  for (int worker = 0; worker < parts_.communicator.size(); ++worker) {
    auto& of_worker = workers.emplace_back();
    for (auto const& of_block : buffers_) {
      auto& copies = of_worker.emplace_back();
      for (auto const& buffer : of_block) {
        copies.push_back(
            all.narrow(0, offset, buffer.numel()).view(buffer.sizes()).to(buffer.scalar_type()));
        offset += buffer.numel();
      }
    }
  }
  return average(workers);
}

at::Tensor Ddp::predict(at::Tensor const& images) {
  return infer(replica_, evaluation_buffers_, tape_, images);
}

NamedTensors Ddp::gather_momentum() {
  return update_.momentum().defined() ? replica_.named(update_.momentum()) : NamedTensors{};
}

}  // namespace stratagem
