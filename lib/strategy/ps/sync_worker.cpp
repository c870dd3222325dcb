#include "strategy/ps/sync_worker.hpp"

#include <cmath>

#include "strategy/shared/step_status.hpp"

namespace stratagem {

void SyncPsWorker::describe_push(PushHeader& line, StepOptions const& options) {
  hashes_ = options.compare_replicas ? ReplicaHashes(replicas()) : ReplicaHashes();
  line.replicas = in_message(hashes_.total());
  // What comes is the answer to `delay` pushes ago.
  line.pulls = pushes_ > plan_.policy.delay;
}

StepResult SyncPsWorker::result_of(Batch const& batch, PushHeader const&) {
  auto const answer = await_answer();
  bool const sound = answer.alike && std::isfinite(answer.loss);
  bool const usable = !sound || !scale_.needs_norm() || scale_.admit(answer.norm);
  if (!sound || scale_.problem()) {
    await_parameters(all().end);
    if (!answer.alike) refuse_difference(parts_.world.all(), hashes_, batch.step);
    if (!sound) refuse_loss(parts_.model, parts_.world.all(), batch.step, first_bad_block_);
    throw AgreedError(*scale_.problem());
  }
  return {.loss = answer.loss / workers(),
          .correct = answer.correct,
          .labels = batch.labels.numel() * workers(),
          .skipped = !usable,
          .requests = answer.requests};
}

State SyncPsWorker::state() {
  auto state = PsWorker::state();
  state.counters = scale_.counters();
  return state;
}

}  // namespace stratagem
