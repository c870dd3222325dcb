#include "strategy/ps/async_worker.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/shared/update.hpp"

namespace stratagem {

using trace::Phase;

AsyncPsWorker::AsyncPsWorker(PsPlan plan, StrategyParts const& parts)
    : PsWorker(std::move(plan), parts),
      end_(empty_message()),
      pace_(plan_.policy),
      own_(make_own_updates(plan_.policy, parts.optimizer, all_elements(replica_.layout()),
                            replica_.flat().options())) {
  for (int server = 0; own_ && server < plan_.placement.servers(); ++server)
    notes_.push_back(empty_message());
}

void AsyncPsWorker::begin_round(Round const& round) {
  PsWorker::begin_round(round);
  noted_.clear();
  round_ = ShareSequence(round.first_step, round.end_step, workers(), plan_.policy.pushes);
  batches_ = round.batches;
  for (auto const& share : round_.first_of(worker_)) batches_->ask(share);
  pace_.begin_round();
}

void AsyncPsWorker::describe_push(PushHeader& line, StepOptions const&) {
  read_notes();
  line.pulls = pace_.next();
  if (line.pulls) expect_notes();
}

void AsyncPsWorker::read_notes() {
  if (noted_.empty()) return;
  parts_.recorder.enter(Phase::comm_exposed);
  auto reads = plan_.policy.staleness;
  for (std::size_t i = 0; i < noted_.size(); ++i) {
    noted_[i].wait_on_host();
    reads = std::min(reads, note_from(notes_[i]).reads);
  }
  noted_.clear();
  pace_.allow(reads);
}

void AsyncPsWorker::expect_notes() {
  auto const& servers = plan_.placement.server_ranks();
  for (std::size_t i = 0; i < notes_.size(); ++i)
    noted_.push_back(parts_.world.all().receive(notes_[i], servers[i], reads_tag));
}

StepResult AsyncPsWorker::result_of(Batch const& batch, PushHeader const& line) {
  if (own_ || scale_.needs_norm()) read_pushed();
  bool const usable = end_push();
  if (own_ && usable && !line.pulls) {
    own_->apply(replica_.flat(), gradients_, {.lr = line.lr, .factor = scale_.value()});
    replica_.refresh(all());
  }
  auto const answer = await_answer();
  pace_.learn(answer.lag);
  if (answer.share >= 0) batches_->ask(round_.at(answer.share));
  return {.loss = line.loss,
          .correct = line.correct,
          .labels = batch.labels.numel(),
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
      str("the loss is not finite at step ", batch.step, " on rank ", parts_.world.all().rank()),
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
