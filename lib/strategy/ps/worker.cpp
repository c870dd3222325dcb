#include "strategy/ps/worker.hpp"

#include <chrono>
#include <cmath>
#include <iterator>
#include <thread>

#include <ATen/ATen.h>

#include "base/arithmetic.hpp"
#include "base/clock.hpp"
#include "strategy/codes/compressed.hpp"
#include "strategy/pass/micro_batches.hpp"
#include "strategy/ps/round_counts.hpp"

namespace stratagem {

using trace::Phase;

PsWorker::PsWorker(PsPlan plan, StrategyParts const& parts)
    : plan_(std::move(plan)),
      parts_(parts),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      transport_(make_transport(plan_, parts)),
      scale_(make_gradient_scale(plan_, parts.optimizer, parts.precision)),
      worker_(plan_.placement.seat_of(parts.world.all().rank()).worker),
      buffers_(make_buffers(parts.model, parts.device, parts.precision.compute)),
      gradients_(parts.allocate(gpu::MemoryCategory::gradients, replica_.layout().size())),
      store_(replica_, gradients_),
      passes_(parts),
      code_(make_push_code(plan_.config.compression, replica_.layout(), parts.seed)),
      line_(empty_message()),
      answer_(empty_message()),
      pulls_(plan_.servers.chunks.size()) {
  if (!code_) return;
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
  residual_ = code_->make_residual();
  codes_ = at::zeros({code_->bytes(gradients_.numel())}, at::kByte);
}

StepResult PsWorker::step(Batch const& batch, StepOptions const& options) {
  auto const begin = monotonic_ns();
  waited_ns_ = 0;
  PushHeader line{.step = batch.step,
                  .first_slot = batch.first_slot,
                  .lr = options.lr,
                  .requests = options.requests};
  auto const micros = split(batch, plan_.config.micro_batches);
  for (std::size_t i = 0; i < micros.size(); ++i) {
    std::int64_t backward_begin = 0;
    auto const noted = [&](CrossEntropy const& loss) {
      note(loss, micros[i], line);
      if (i == 0) sends_.clear();  // of the step before: what they carry is about to be overwritten
      if (i + 1 == micros.size()) {
        be_slow(monotonic_ns() - begin - waited_ns_ + backward_ns_);
        begin_push(batch, options, line);
      }
      backward_begin = monotonic_ns();
    };
    store_.write(i == 0 ? GradWrite::overwrite : GradWrite::accumulate);
    passes_.run(*this, buffers_, micros[i], parts_.context_of(micros[i], scale_.loss_scale()),
                noted);
    backward_ns_ = monotonic_ns() - backward_begin;
  }
  pushing_.reset();
  return result_of(batch, line);
}

void PsWorker::begin_push(Batch const& batch, StepOptions const& options, PushHeader& line) {
  ++pushes_;
  line.collectives = in_message(parts_.world.all().collectives().fingerprint());
  describe_push(line, options);
  announce(line);
  pushing_.emplace(Pushing{batch, line.pulls});
}

void PsWorker::note(CrossEntropy const& pass, Batch const& micro, PushHeader& line) {
  auto const loss = pass.loss.item<double>();
  if (!std::isfinite(loss)) note_bad_loss(micro, passes_.kept().first_non_finite());
  line.loss += loss / plan_.config.micro_batches;
  line.correct += pass.correct.item<std::int64_t>();
}

std::span<at::Tensor const> PsWorker::unshard(int block, Direction direction) {
  if (direction == Direction::forward) {
    // Autograd would take rounding what came late for a change of what the pass has kept.
    auto const precision = parts_.precision.compute;
    bool const rounds = compute_type(precision) != master_type(precision);
    await_parameters(rounds ? replica_.layout().size() : replica_.layout().range(block).end);
  }
  return replica_.parameters(block);
}

void PsWorker::landed(int block) {
  if (!pushing_) return;
  // What lies beyond the block's begin is complete, and its parameters have served.
  auto const& chunks = plan_.servers.chunks;
  auto const complete = replica_.layout().range(block).begin;
  for (auto& next = pushing_->next; next < chunks.size(); ++next) {
    if (chunks[next].range.begin < complete) return;
    push(chunks[next], pushing_->of);
    if (pushing_->pulls) pull(chunks[next]);
  }
}

void PsWorker::send_to_servers(at::Tensor const& message, int tag) {
  for (auto const server : plan_.placement.server_ranks())
    sends_.push_back(parts_.world.all().send(message, server, tag));
}

void PsWorker::announce(PushHeader const& line) {
  line_.copy_(to_message(line));
  send_to_servers(line_, line_tag);
  if (!line.last)
    answered_ = parts_.world.all().receive(answer_, plan_.placement.rank_of_server(0), answer_tag);
}

PullReply PsWorker::await_answer() {
  parts_.recorder.enter(Phase::comm_exposed);
  answered_.wait_on_host();
  return answer_from(answer_);
}

void PsWorker::push(ServerChunk const& chunk, Batch const& of) {
  if (!code_) {
    sends_.push_back(transport_->push(in_flat(gradients_, chunk), chunk));
    return;
  }
  auto const code = code_->part(codes_, chunk.range);
  code_->encode(gradients_, residual_, chunk.range, of, code);
  sends_.push_back(transport_->push(code, chunk));
}

void PsWorker::read_pushed() {
  if (code_) code_->decode(codes_, all(), gradients_);
}

void PsWorker::pull(ServerChunk const& chunk) {
  auto const piece = in_flat(replica_.flat(), chunk);
  auto const index = static_cast<std::size_t>(chunk.index);
  pulls_[index] = transport_->pull(piece, chunk);
  awaited_ = index + 1;
}

void PsWorker::pull_all() {
  for (auto const& chunk : plan_.servers.chunks) pull(chunk);
  await_parameters(replica_.layout().size());
}

void PsWorker::await_parameters(std::int64_t end) {
  if (awaited_ == 0 || plan_.servers.chunks[awaited_ - 1].range.begin >= end) return;
  parts_.recorder.enter(Phase::comm_exposed);
  auto const begin = monotonic_ns();
  for (; awaited_ > 0 && plan_.servers.chunks[awaited_ - 1].range.begin < end; --awaited_) {
    pulls_[awaited_ - 1].wait_on_stream();
    replica_.refresh(plan_.servers.chunks[awaited_ - 1].range);
  }
  waited_ns_ += monotonic_ns() - begin;
}

void PsWorker::be_slow(std::int64_t busy_ns) const {
  if (worker_ != plan_.config.slow_worker) return;
  std::this_thread::sleep_for(
      std::chrono::nanoseconds(saturated(static_cast<double>(busy_ns) * (plan_.config.slow - 1))));
}

void PsWorker::drain() {
  await_parameters(replica_.layout().size());
  if (plan_.policy.delay > 0 && pushes_ > 0)
    pull_all();  // the answer to the last push is still due
  sends_.clear();
  announce({.last = true});
  pull_all();
  sends_.clear();
}

std::string PsWorker::report() {
  auto const counts = RoundCounts().joined(parts_.world.all());
  return parts_.world.all().rank() == 0 ? describe(counts, plan_.policy) : "";
}

State PsWorker::state() {
  State state{.of_parameters = replica_.state({}),
              .buffers = {{worker_, buffers_}},
              .replicas = replicas()};
  for (auto const& kind : kept_kinds(plan_.policy, parts_.optimizer))
    state.of_parameters.push_back({kind, replica_.flat().scalar_type(), {}});
  if (residual_.defined())
    std::ranges::move(
        of_each_worker(Compression::residual, replica_.layout(), residual_, workers(), worker_),
        std::back_inserter(state.of_parameters));
  return state;
}

}  // namespace stratagem
