#pragma once

#include <span>
#include <vector>

#include "strategy/pass/passes.hpp"
#include "strategy/serial/emulated_model.hpp"
#include "strategy/shared/synchronous.hpp"

namespace stratagem {

/// One process. With emulate_ranks N it makes, one after the other, the passes that N synchronous
/// ranks would make at the same time, and adds their gradients in rank order: what every
/// synchronous strategy is compared with, bit for bit.
class Serial final : public Synchronous {
 public:
  Serial(SerialConfig const& config, StrategyParts const& parts);

  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override {
    return passes_.predict(model_.sum(), statistics, images);
  }
  State state() override;
  void state_replaced() override { model_.state_replaced(); }

 private:
  TrainedModel& model() override { return model_; }
  void submit(Batch const& batch) override;
  /// On a GPU nothing was updated: makes the passes again until one is not finite.
  [[noreturn]] void refuse_loss(Batch const& batch) override;
  [[noreturn]] void refuse_loss_of(int worker, std::int64_t step, int block) const;
  /// The shares of a group's workers, from `first_worker` on.
  struct Group {
    int first_worker;
    std::span<Batch const> shares;
    ReplicaGradients& sum;
  };
  /// Every worker's own gradients first, then over workers: as DDP adds.
  void accumulate_unsharded(Group const& group);
  /// Over workers first, then over micro-batches: as FSDP adds that reduces each micro-batch.
  void accumulate_sharded(Group const& group);
  /// Of a worker's share, in so many micro-batches.
  void pass(int worker, Batch const& share, int micro_batches, ReplicaGradients& gradients);

  SerialConfig config_;
  EmulatedModel model_;
  std::vector<Buffers> buffers_;  ///< by worker
  Passes passes_;
};

}  // namespace stratagem
