#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "data/batch_source.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

/// What one rank wants of all after a step, or what some rank wanted.
struct Requests {
  bool stop = false;       ///< the run's time is over: end it
  bool interrupt = false;  ///< end it so that it can be resumed later
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

/// What all ranks know after a step; where the plan does not share results, what this rank knows.
struct StepResult {
  double loss = 0;           ///< mean over the global batch
  std::int64_t correct = 0;  ///< labels of the global batch that were predicted
  std::int64_t labels = 0;   ///< of the global batch: one per image, or one per token
  bool skipped = false;      ///< the scaled gradients overflowed: nothing was updated
  Requests requests;         ///< of all ranks; none between two exchanges
};

/// Steps [first_step, end_step) of a training, between two meetings of all ranks.
struct Round {
  std::int64_t first_step = 0, end_step = 0;
  BatchSource* batches = nullptr;  ///< of a rank that makes passes
  /// Of this rank, where it makes no passes; others say theirs with each step.
  std::function<Requests()> requests = [] { return Requests{}; };
};

/// One rank's part in a training: it holds a part of the state.
class Participant {
 public:
  virtual ~Participant() = default;

  /// Between two rounds.
  virtual State state() = 0;
  /// What state() shows was written to: renews what is made of it.
  virtual void state_replaced() {}
  /// What a line about the rounds since the last call should tell beside their results; on rank 0,
  /// empty elsewhere. Collective.
  virtual std::string report() { return {}; }
};

/// A rank that makes passes. Calls are collective and in the same order on all ranks; each strategy
/// is one page to read.
class Strategy : public Participant {
 public:
  /// A round begins; it ends with drain().
  virtual void begin_round(Round const& /*round*/) {}
  /// One update from this rank's part of a global batch. Error(non_finite) when the loss is not
  /// finite, on all ranks; the ones where it happened name the block. Likewise Error(mismatch) when
  /// ranks have called different collectives, and Error(diverged) when they compare replicas that
  /// differ.
  virtual StepResult step(Batch const& batch, StepOptions const& options) = 0;
  /// Finishes what is under way; parameters are whole afterwards.
  virtual void drain() {}
  /// Logits in evaluation mode, with these running statistics.
  virtual at::Tensor predict(at::Tensor const& images, Buffers const& statistics) = 0;
};

/// A rank that makes no passes and serves those that do.
class Server : public Participant {
 public:
  /// One round, to its end.
  virtual void serve(Round const& round) = 0;
  /// Pushes so far that it did not apply and whose workers do not know it; of one that other
  /// servers applied, its part.
  virtual double discarded() const { return 0; }
};

/// What this rank does in a training: one of the two.
struct Member {
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<Server> server;

  Participant& participant() const {
    return strategy ? static_cast<Participant&>(*strategy) : *server;
  }
};

inline Requests& Requests::operator|=(Requests const& other) {
  stop = stop || other.stop;
  interrupt = interrupt || other.interrupt;
  save = save || other.save;
  return *this;
}

}  // namespace stratagem
