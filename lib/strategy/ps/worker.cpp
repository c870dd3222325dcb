#include "strategy/ps/worker.hpp"

#include <chrono>
#include <cmath>
#include <thread>

#include <ATen/ATen.h>

#include "base/arithmetic.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/control.hpp"
#include "strategy/micro_batches.hpp"
#include "strategy/ps/loss_scales.hpp"
#include "strategy/ps/round_counts.hpp"
#include "strategy/update.hpp"

namespace stratagem {

using trace::Phase;

PsWorker::PsWorker(PsConfig const& config, StrategyParts const& parts)
    : config_(config),
      parts_(parts),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      plan_(plan_servers(config, replica_.layout(), parts.communicator.size(),
                         static_cast<std::int64_t>(replica_.flat().element_size()))),
      transport_(make_transport(config, plan_, parts)),
      policy_(policy_of(config, workers())),
      scale_(make_gradient_scale(config, parts.optimizer, parts.precision, workers())),
      worker_(plan_.roles.worker_of(parts.communicator.rank())),
      buffers_(make_buffers(parts.model, parts.device, parts.precision.compute)),
      gradients_(parts.allocate(gpu::MemoryCategory::gradients, replica_.layout().size())),
      tape_(parts.model.blocks, parts.recompute),
      line_(empty_message()),
      answer_(empty_message()),
      end_(empty_message()),
      pulls_(plan_.chunks.size()),
      pace_(policy_) {
  for (int block = 0; block < tape_.blocks(); ++block)
    gradient_views_.push_back(views_of(gradients_, replica_.layout(), block));
}

void PsWorker::begin_round(std::int64_t first_step, std::int64_t end_step) {
  pushes_ = 0;
  if (!policy_.asynchronous()) return;
  round_ = ShareSequence(first_step, end_step, workers(), policy_.pushes);
  shares_ = round_.first_of(worker_);
  pace_.begin_round();
}

StepResult PsWorker::step(Batch const& batch, StepOptions const& options) {
  auto const begin = monotonic_ns();
  waited_ns_ = 0;
  PsLine line{.step = batch.step,
              .first_slot = batch.first_slot,
              .lr = options.lr,
              .requests = options.requests};
  auto const micros = split(batch, config_.micro_batches);
  for (std::size_t i = 0; i < micros.size(); ++i) {
    bool const last = i + 1 == micros.size();
    auto const pass = cross_entropy(forward(micros[i]), micros[i].labels, scale_.loss_scale());
    note(pass, micros[i], line);
    if (i == 0) sends_.clear();  // of the step before: what they carry is about to be overwritten
    if (last) {
      bool const compares = options.compare_replicas && !policy_.asynchronous();
      hashes_ = compares ? ReplicaHashes(replicas()) : ReplicaHashes();
      line.collectives = in_message(parts_.communicator.collectives().fingerprint());
      line.replicas = in_message(hashes_.total());
      be_slow(monotonic_ns() - begin - waited_ns_ + backward_ns_);
      ++pushes_;
      // In sync what comes is the answer to `delay` pushes ago.
      pulls_now_ = policy_.asynchronous() ? pace_.next() : pushes_ > policy_.delay;
      line.pulls = pulls_now_;
      announce(line);
    }
    backward(pass.gradient, i == 0 ? Landing::store : Landing::add, last);
  }
  end_push();
  return result_of(batch, line);
}

void PsWorker::note(CrossEntropy const& pass, Batch const& micro, PsLine& line) {
  auto const loss = pass.loss.item<double>();
  if (!std::isfinite(loss)) note_bad_loss(micro);
  line.loss += loss / config_.micro_batches;
  line.correct += pass.correct.item<std::int64_t>();
}

at::Tensor PsWorker::forward(Batch const& micro) {
  auto const context = parts_.context_of(micro);
  // Autograd would take rounding what came late for a change of what the pass has kept.
  auto const precision = parts_.precision.compute;
  if (compute_type(precision) != master_type(precision)) await_parameters(replica_.layout().size());
  at::Tensor x = micro.images;
  for (int block = 0; block < tape_.blocks(); ++block) {
    await_parameters(replica_.layout().range(block).end);
    parts_.recorder.enter(Phase::forward);
    auto const& buffers = buffers_[static_cast<std::size_t>(block)];
    x = tape_.forward(block, x, {replica_.parameters(block), buffers, context});
  }
  return x;
}

void PsWorker::backward(at::Tensor gradient, Landing landing, bool last_micro_batch) {
  parts_.recorder.enter(Phase::backward);
  auto const begin = monotonic_ns();
  auto next = plan_.chunks.begin();
  for (int block = tape_.blocks() - 1; block >= 0; --block) {
    gradient =
        tape_.backward(block, gradient, gradient_views_[static_cast<std::size_t>(block)], landing);
    if (!last_micro_batch) continue;
    // What lies beyond the block's begin is complete, and its parameters have served.
    for (; next != plan_.chunks.end() && next->range.begin >= replica_.layout().range(block).begin;
         ++next) {
      push(*next);
      if (pulls_now_) pull(*next);
    }
  }
  backward_ns_ = monotonic_ns() - begin;
}

void PsWorker::announce(PsLine const& line) {
  line_.copy_(to_message(line));
  for (auto const server : plan_.roles.servers)
    sends_.push_back(parts_.communicator.send(line_, server, line_tag));
  if (!line.last)
    answered_ = parts_.communicator.receive(answer_, plan_.roles.servers.front(), answer_tag);
}

void PsWorker::end_push() {
  if (!policy_.asynchronous() || !scale_.needs_norm()) return;
  parts_.recorder.enter(Phase::optimizer);
  PsEnd end{.loss_scale = scale_.loss_scale()};
  usable_ = end.usable = scale_.admit(gradient_norm({&gradients_, 1}));
  if (auto const& problem = scale_.problem()) throw Error(*problem);
  end.factor = scale_.value();
  end_.copy_(to_message(end));
  for (auto const server : plan_.roles.servers)
    sends_.push_back(parts_.communicator.send(end_, server, end_tag));
}

void PsWorker::push(ServerChunk const& chunk) {
  auto const piece = in_flat(gradients_, chunk);
  sends_.push_back(transport_->push(piece, chunk));
}

void PsWorker::pull(ServerChunk const& chunk) {
  auto const piece = in_flat(replica_.flat(), chunk);
  auto const index = static_cast<std::size_t>(chunk.index);
  pulls_[index] = transport_->pull(piece, chunk);
  awaited_ = index + 1;
}

void PsWorker::pull_all() {
  for (auto const& chunk : plan_.chunks) pull(chunk);
  await_parameters(replica_.layout().size());
}

void PsWorker::await_parameters(std::int64_t end) {
  if (awaited_ == 0 || plan_.chunks[awaited_ - 1].range.begin >= end) return;
  parts_.recorder.enter(Phase::comm_exposed);
  auto const begin = monotonic_ns();
  for (; awaited_ > 0 && plan_.chunks[awaited_ - 1].range.begin < end; --awaited_) {
    pulls_[awaited_ - 1].wait_on_stream();
    replica_.refresh(plan_.chunks[awaited_ - 1].range);
  }
  waited_ns_ += monotonic_ns() - begin;
}

StepResult PsWorker::result_of(Batch const& batch, PsLine const& line) {
  parts_.recorder.enter(Phase::comm_exposed);
  answered_.wait_on_host();
  auto const answer = answer_from(answer_);
  if (policy_.asynchronous()) {
    pace_.learn(answer.lag);
    if (answer.share >= 0) shares_.push_back(round_.at(answer.share));
    return {.loss = line.loss,
            .correct = line.correct,
            .samples = batch.size(),
            .skipped = !usable_,
            .requests = line.requests};
  }
  bool const sound = answer.alike && std::isfinite(answer.loss);
  if (sound && scale_.needs_norm()) usable_ = scale_.admit(answer.norm);
  if (!sound || scale_.problem()) {
    await_parameters(replica_.layout().size());
    if (!answer.alike) refuse_difference(parts_.communicator, hashes_, batch.step);
    if (!sound) refuse_loss(parts_.model, parts_.communicator, batch.step, first_bad_block_);
    throw AgreedError(*scale_.problem());
  }
  return {.loss = answer.loss / workers(),
          .correct = answer.correct,
          .samples = batch.size() * workers(),
          .skipped = !usable_,
          .requests = answer.requests};
}

void PsWorker::note_bad_loss(Batch const& batch) {
  first_bad_block_ = tape_.first_non_finite();
  if (!policy_.asynchronous()) return;  // all workers will know, and end together
  auto const where =
      first_bad_block_ < 0
          ? std::string("the loss itself; look at the labels")
          : "the output of block " +
                parts_.model.blocks[static_cast<std::size_t>(first_bad_block_)]->name();
  throw Error(
      ExitCode::non_finite,
      str("the loss is not finite at step ", batch.step, " on rank ", parts_.communicator.rank()),
      "first in " + where,
      "lower optimizer.lr or optimizer.momentum, or take strategy.mode dana or sync");
}

void PsWorker::be_slow(std::int64_t busy_ns) const {
  if (worker_ != config_.slow_worker) return;
  std::this_thread::sleep_for(
      std::chrono::nanoseconds(saturated(static_cast<double>(busy_ns) * (config_.slow - 1))));
}

void PsWorker::drain() {
  await_parameters(replica_.layout().size());
  if (policy_.delay > 0 && pushes_ > 0) pull_all();  // the answer to the last push is still due
  sends_.clear();
  announce({.last = true});
  pull_all();
  sends_.clear();
}

NamedTensors PsWorker::replicas() {
  return replica_.views(replica_.flat(), "parameters/");
}

std::string PsWorker::report() {
  auto const counts = RoundCounts().joined(parts_.communicator);
  return parts_.communicator.rank() == 0 ? describe(counts, policy_) : "";
}

void PsWorker::prepare_evaluation() {
  evaluation_buffers_ = average(buffers_, parts_.communicator, plan_.roles.workers);
}

at::Tensor PsWorker::predict(at::Tensor const& images) {
  return infer(replica_, evaluation_buffers_, tape_, images);
}

NamedTensors PsWorker::gather_parameters(Wanted const& wanted) {
  return holds_whole_tensors() ? replica_.named(replica_.flat(), wanted) : NamedTensors{};
}

NamedTensors PsWorker::gather_momentum(Wanted const& wanted) {
  if (parts_.optimizer.momentum == 0 || !holds_whole_tensors()) return {};
  auto const momentum = at::zeros_like(replica_.flat());
  std::vector<Work> works;
  for (auto const& chunk : plan_.chunks)
    works.push_back(parts_.communicator.receive(in_flat(momentum, chunk), plan_.owner_of(chunk),
                                                chunk_tag(chunk.index)));
  for (auto& work : works) work.wait_on_host();
  return replica_.named(momentum, wanted);
}

NamedTensors PsWorker::gather_buffers() {
  return named(parts_.model, average(buffers_, parts_.communicator, plan_.roles.workers));
}

std::map<int, NamedTensors> PsWorker::own_buffers() {
  return {{worker_, named(parts_.model, buffers_)}};
}

std::map<std::string, double> PsWorker::counters() const {
  return policy_.asynchronous() ? join_loss_scales(scale_, worker_, workers(), parts_.communicator)
                                : scale_.counters();
}

void PsWorker::load(std::map<std::string, at::Tensor> const& tensors) {
  replica_.load(tensors);
  stratagem::load(parts_.model, tensors, buffers_);
}

void PsWorker::load_buffers(int worker, std::map<std::string, at::Tensor> const& tensors) {
  if (worker == worker_) stratagem::load(parts_.model, tensors, buffers_);
}

void PsWorker::load_counters(std::map<std::string, double> const& counters) {
  scale_.load(policy_.asynchronous() ? loss_scale_of(worker_, counters) : counters);
}

}  // namespace stratagem
