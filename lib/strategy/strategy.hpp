#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/batch.hpp"
#include "strategy/named_tensors.hpp"

namespace stratagem {

/// What a step is told.
struct StepOptions {
  double lr = 0;
  bool request_stop = false;  ///< this rank wants the run to end after this step
};

/// What all ranks know after a step. Where the plan has `deals_shares`, what this rank alone knows.
struct StepResult {
  double loss = 0;           ///< mean over the global batch
  std::int64_t correct = 0;  ///< of the global batch
  std::int64_t samples = 0;  ///< of the global batch
  bool skipped = false;      ///< the scaled gradients overflowed: nothing was updated
  bool stop = false;         ///< some rank requested it
};

/// A way to train one model on the ranks of a group. Calls are collective and in the same order on
/// all ranks; each strategy is one page to read.
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// A stretch of training begins, steps [first_step, end_step); it ends with drain().
  virtual void begin_round(std::int64_t /*first_step*/, std::int64_t /*end_step*/) {}
  /// Where the plan has `deals_shares`: what this rank is to work on in this round beyond what it
  /// was told before. Asked before each step; the round is over when there is nothing left.
  virtual std::vector<Share> new_shares() { return {}; }

  /// One update from this rank's part of a global batch. Error(non_finite) when the loss is not
  /// finite, on all ranks; the ones where it happened name the block.
  virtual StepResult step(Batch const& batch, StepOptions const& options) = 0;
  /// Finishes what is under way; parameters are whole afterwards.
  virtual void drain() = 0;

  /// Makes the model that predict() uses: running statistics averaged over the workers, in rank
  /// order.
  virtual void prepare_evaluation() = 0;
  /// Logits in evaluation mode.
  virtual at::Tensor predict(at::Tensor const& images) = 0;

  /// Whole parameters by name, on the CPU, in model order; complete on rank 0 at least. Tensors
  /// that were cut into parts are joined.
  virtual NamedTensors gather_parameters() = 0;
  /// The optimizer's momentum, likewise; empty without momentum.
  virtual NamedTensors gather_momentum() = 0;
  /// Running statistics, averaged as for evaluation.
  virtual NamedTensors gather_buffers() = 0;
  /// Replaces the parameters and buffers that `tensors` names, before the first step.
  virtual void load(std::map<std::string, at::Tensor> const& tensors) = 0;
};

}  // namespace stratagem
