#pragma once

#include "strategy/ps/worker.hpp"
#include "strategy/state/replicas.hpp"

namespace stratagem {

/// A worker whose every step is one update from the gradients of all workers. What all of them know
/// after a step they learn from server 0.
class SyncPsWorker final : public PsWorker {
 public:
  using PsWorker::PsWorker;

  State state() override;

 private:
  void describe_push(PushHeader& line, StepOptions const& options) override;
  void note_bad_loss(Batch const&, int block) override { first_bad_block_ = block; }
  StepResult result_of(Batch const& batch, PushHeader const& line) override;

  ReplicaHashes hashes_;      ///< of this step, where it compares them
  int first_bad_block_ = -1;  ///< of this step's passes
};

}  // namespace stratagem
