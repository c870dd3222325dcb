#include "strategy/ps/async_worker.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/shared/update.hpp"

namespace stratagem {

using trace::Phase;

void AsyncPsWorker::begin_round(Round const& round) {
  PsWorker::begin_round(round);
  round_ = ShareSequence(round.first_step, round.end_step, workers(), plan_.policy.pushes);
  batches_ = round.batches;
  for (auto const& share : round_.first_of(worker_)) batches_->ask(share);
  pace_.begin_round();
}

StepResult AsyncPsWorker::result_of(Batch const& batch, PushHeader const& line) {
  bool const usable = end_push();
  auto const answer = await_answer();
  pace_.learn(answer.lag);
  if (answer.share >= 0) batches_->ask(round_.at(answer.share));
  return {.loss = line.loss,
          .correct = line.correct,
          .samples = batch.size(),
          .skipped = !usable,
          .requests = line.requests};
}

bool AsyncPsWorker::end_push() {
  if (!scale_.needs_norm()) return true;
  parts_.recorder.enter(Phase::optimizer);
  PushTrailer end{.loss_scale = scale_.loss_scale()};
  end.usable = scale_.admit(gradient_norm({&gradients_, 1}));
  if (auto const& problem = scale_.problem()) throw Error(*problem);
  end.factor = scale_.value();
  end_.copy_(to_message(end));
  send_to_servers(end_, end_tag);
  return end.usable;
}

void AsyncPsWorker::note_bad_loss(Batch const& batch, int block) {
  auto const where = block < 0 ? std::string("the loss itself; look at the labels")
                               : "the output of block " +
                                     parts_.model.blocks[static_cast<std::size_t>(block)]->name();
  throw Error(
      ExitCode::non_finite,
      str("the loss is not finite at step ", batch.step, " on rank ", parts_.communicator.rank()),
      "first in " + where,
      "lower optimizer.lr or optimizer.momentum, or take strategy.mode dana or sync");
}

State AsyncPsWorker::state() {
  auto state = PsWorker::state();
  state.counters = scale_.counters();
  state.counters_of = worker_;
  return state;
}

}  // namespace stratagem
