#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/batch.hpp"
#include "strategy/named_tensors.hpp"

namespace stratagem {

/// What one rank wants of all after a step, or what some rank wanted.
struct Requests {
  bool stop = false;       ///< the run's time is over: end it
  bool interrupt = false;  ///< end it so that it can go on another time
  bool save = false;       ///< pause, to save a checkpoint

  bool any() const { return stop || interrupt || save; }
  bool end() const { return stop || interrupt; }
  Requests& operator|=(Requests const& other);
};

/// What a step is told.
struct StepOptions {
  double lr = 0;
  Requests requests;              ///< of this rank
  bool compare_replicas = false;  ///< the same on all ranks
};

/// What all ranks know after a step. Where the plan has `deals_shares`, what this rank alone knows.
struct StepResult {
  double loss = 0;           ///< mean over the global batch
  std::int64_t correct = 0;  ///< of the global batch
  std::int64_t samples = 0;  ///< of the global batch
  bool skipped = false;      ///< the scaled gradients overflowed: nothing was updated
  Requests requests;         ///< of all ranks
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
  /// finite, on all ranks; the ones where it happened name the block. Likewise Error(mismatch) when
  /// ranks have called different collectives, and Error(diverged) when they compare replicas that
  /// differ.
  virtual StepResult step(Batch const& batch, StepOptions const& options) = 0;
  /// Finishes what is under way; parameters are whole afterwards.
  virtual void drain() = 0;
  /// What a line about the steps since the last call should tell beside their results; on rank 0,
  /// empty elsewhere. Collective.
  virtual std::string report() { return {}; }

  /// What other ranks hold too, bit for bit, between two rounds: parameters and momentum, by name.
  /// Views of it; nothing where nothing is held twice.
  virtual NamedTensors replicas() { return {}; }

  /// Makes the model that predict() uses: running statistics averaged over the workers, in rank
  /// order.
  virtual void prepare_evaluation() = 0;
  /// Logits in evaluation mode.
  virtual at::Tensor predict(at::Tensor const& images) = 0;

  /// Copies of whole parameters by name, on the CPU, in model order: those that this rank wants.
  /// Tensors that were cut into parts are joined. A rank that StrategyPlan::holders does not name
  /// gets none.
  virtual NamedTensors gather_parameters(Wanted const& wanted) = 0;
  /// The optimizer's momentum, likewise; empty without momentum.
  virtual NamedTensors gather_momentum(Wanted const& wanted) = 0;
  /// Running statistics, averaged as for evaluation.
  virtual NamedTensors gather_buffers() = 0;
  /// Copies of the running statistics of the workers that this rank plays, by worker.
  virtual std::map<int, NamedTensors> own_buffers() = 0;
  /// What else the next step depends on, by name; of all ranks. Collective.
  virtual std::map<std::string, double> counters() const { return {}; }

  // Before the first step, each on its own: replaces what is named, whole tensors on the CPU.
  /// Parameters and the buffers of every worker.
  virtual void load(std::map<std::string, at::Tensor> const& tensors) = 0;
  virtual void load_momentum(std::map<std::string, at::Tensor> const& tensors) = 0;
  /// Of one worker; nothing happens where this rank does not play it.
  virtual void load_buffers(int worker, std::map<std::string, at::Tensor> const& tensors) = 0;
  virtual void load_counters(std::map<std::string, double> const& /*counters*/) {}
};

inline Requests& Requests::operator|=(Requests const& other) {
  stop = stop || other.stop;
  interrupt = interrupt || other.interrupt;
  save = save || other.save;
  return *this;
}

}  // namespace stratagem
