#pragma once

#include <memory>
#include <vector>

#include "strategy/ps/own_updates.hpp"
#include "strategy/ps/policy/pull_schedule.hpp"
#include "strategy/ps/protocol/share.hpp"
#include "strategy/ps/worker.hpp"

namespace stratagem {

/// A worker that goes on by itself: its pushes are applied when they come, and server 0 deals it
/// its next share of the round with each answer. It has a loss scale of its own.
class AsyncPsWorker final : public PsWorker {
 public:
  AsyncPsWorker(PsPlan plan, StrategyParts const& parts);

  void begin_round(Round const& round) override;
  State state() override;

 private:
  void describe_push(PushHeader& line, StepOptions const&) override;
  [[noreturn]] void note_bad_loss(Batch const& batch, int block) override;
  StepResult result_of(Batch const& batch, PushHeader const& line) override;
  /// Decides whether the push counts, and tells all servers.
  bool end_push();
  /// What came with the last pull, and what comes with the next one.
  void read_notes();
  void expect_notes();

  at::Tensor end_;  ///< message
  ShareSequence round_;
  BatchSource* batches_ = nullptr;  ///< of this round
  PullSchedule pace_;
  std::unique_ptr<OwnUpdates> own_;  ///< where it reads cached parameters
  std::vector<at::Tensor> notes_;    ///< messages, by server
  std::vector<Work> noted_;          ///< by server, of the last pull
};

}  // namespace stratagem
