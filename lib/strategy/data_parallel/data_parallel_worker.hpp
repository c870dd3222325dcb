#pragma once

#include <memory>

#include "strategy/data_parallel/data_parallel.hpp"
#include "strategy/pass/passes.hpp"
#include "strategy/shared/synchronous.hpp"

namespace stratagem {

/// A rank of DDP or FSDP: each step it passes its part of the batch, in micro-batches, through a
/// model that it shares with the group.
class DataParallelWorker final : public Synchronous {
 public:
  DataParallelWorker(std::unique_ptr<DataParallel> model, int micro_batches,
                     StrategyParts const& parts, Communicator& group);

  void drain() override { model_->drain(); }
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override {
    return passes_.predict(*model_, statistics, images);
  }
  State state() override;
  void state_replaced() override { model_->state_replaced(); }

 private:
  TrainedModel& model() override { return *model_; }
  void submit(Batch const& batch) override;
  [[noreturn]] void refuse_loss(Batch const& batch) override;

  std::unique_ptr<DataParallel> model_;
  int micro_batches_;
  Buffers buffers_;
  Passes passes_;
};

}  // namespace stratagem
