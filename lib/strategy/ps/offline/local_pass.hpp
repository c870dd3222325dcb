#pragma once

#include "strategy/pass/passes.hpp"
#include "strategy/pass/replica_gradients.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// The pass that any worker of a parameter server makes, in one process that plays all of them.
class LocalPass {
 public:
  /// The references of `parts` outlive it.
  LocalPass(StrategyParts const& parts, int micro_batches);

  /// Whose flat() holds the parameters of the next pass.
  Replica& replica() { return replica_; }
  Replica const& replica() const { return replica_; }

  struct Result {
    double loss = 0;  ///< mean over the batch
    std::int64_t correct = 0;
  };
  /// Forward and backward; updates the running statistics in `buffers`.
  Result run(Batch const& batch, Buffers const& buffers, double loss_scale);
  /// Summed over micro-batches, of the scaled loss; laid out as replica().flat().
  at::Tensor const& gradients() const { return store_.flat(); }

  /// Logits in evaluation mode.
  at::Tensor predict(at::Tensor const& images, Buffers const& buffers) {
    return passes_.predict(store_, buffers, images);
  }

 private:
  StrategyParts parts_;
  int micro_batches_;
  Replica replica_;
  ReplicaGradients store_;
  Passes passes_;
};

}  // namespace stratagem
