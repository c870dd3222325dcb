#pragma once

#include "strategy/ps/policy/pull_schedule.hpp"
#include "strategy/ps/protocol/share.hpp"
#include "strategy/ps/worker.hpp"

namespace stratagem {

/// A worker that goes on by itself: its pushes are applied when they come, and server 0 deals it
/// its next share of the round with each answer. It has a loss scale of its own.
class AsyncPsWorker final : public PsWorker {
 public:
  AsyncPsWorker(PsPlan plan, StrategyParts const& parts)
      : PsWorker(std::move(plan), parts), end_(empty_message()), pace_(plan_.policy) {}

  void begin_round(Round const& round) override;
  State state() override;

 private:
  void describe_push(PushHeader& line, StepOptions const&) override { line.pulls = pace_.next(); }
  [[noreturn]] void note_bad_loss(Batch const& batch, int block) override;
  StepResult result_of(Batch const& batch, PushHeader const& line) override;
  /// Decides whether the push counts, and tells all servers.
  bool end_push();

  at::Tensor end_;  ///< message
  ShareSequence round_;
  BatchSource* batches_ = nullptr;  ///< of this round
  PullSchedule pace_;
};

}  // namespace stratagem
