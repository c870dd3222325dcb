#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

#include "data/batch.hpp"
#include "model/block_tape.hpp"
#include "strategy/pass/block_store.hpp"
#include "strategy/pass/cross_entropy.hpp"
#include "strategy/pass/replica_gradients.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Makes the passes of a rank, one after the other: every strategy's go through here. Enters the
/// phases `forward` and `backward` where a block runs.
class Passes {
 public:
  /// The model of `parts` and its recorder outlive it.
  explicit Passes(StrategyParts const& parts);

  /// Told of the loss of a pass between its forward and its backward pass, while the
  /// outputs of all blocks are kept.
  using Noted = std::function<void(CrossEntropy const&)>;

  /// Forward pass, loss (scaled as `context` says), backward pass. Updates the running statistics
  /// in `buffers`.
  void run(BlockStore& store, Buffers const& buffers, Batch const& micro, Context const& context,
           Noted const& noted);
  /// The same of `micro_batches` equal parts of `share`, whose gradients are added up.
  void run_all(ReplicaGradients& store, Buffers const& buffers, Batch const& share,
               int micro_batches, std::function<Context(Batch const& micro)> const& context_of,
               Noted const& noted);

  /// Logits of a training pass, which the tape keeps for a backward pass.
  at::Tensor forward(BlockStore& store, Buffers const& buffers, at::Tensor const& inputs,
                     Context const& context);
  /// Logits in evaluation mode, with `statistics` as running statistics.
  at::Tensor predict(BlockStore& store, Buffers const& statistics, at::Tensor const& inputs);

  /// What the last forward pass has kept.
  TapePass const& kept() const { return pass_; }

 private:
  void backward(BlockStore& store, at::Tensor gradient);

  trace::Recorder& recorder_;
  Context evaluation_;
  BlockTape tape_;
  TapePass pass_;
};

}  // namespace stratagem
