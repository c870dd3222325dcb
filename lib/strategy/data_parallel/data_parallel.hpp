#pragma once

#include <memory>

#include "strategy/pass/block_store.hpp"
#include "strategy/shared/trained_model.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

/// A model that each rank of a group trains on samples of its own, and how it is spread over them:
/// `Replicated`, whole on every rank, or `Sharded`. Gradients are summed over the group while the
/// last backward pass of a step goes on.
class DataParallel : public TrainedModel, public BlockStore {
 public:
  /// The pass of micro-batch `number` of a step begins. The sums begin in the last one.
  virtual void begin_pass(int number) = 0;
  /// The status knows the loss of that pass; its backward pass follows.
  virtual void begin_backward() {}
  /// The last pass is made: begins the sums that did not begin in it.
  virtual void end_passes() {}

  /// Without running statistics: those belong to the worker.
  virtual State state() = 0;
  virtual void state_replaced() = 0;
  /// Between two rounds: waits for everything that is under way.
  virtual void drain() {}
};

}  // namespace stratagem
