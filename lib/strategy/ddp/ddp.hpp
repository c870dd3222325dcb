#pragma once

#include "comm/work.hpp"
#include "model/block_tape.hpp"
#include "params/bucket_plan.hpp"
#include "strategy/factory.hpp"
#include "strategy/replica.hpp"
#include "strategy/update.hpp"

namespace stratagem {

/// Distributed data parallelism: every rank holds all parameters and runs its part of the global
/// batch; gradients are summed over ranks in buckets while the backward pass goes on (Li et al.,
/// "PyTorch distributed", VLDB 2020). What ranks must agree on travels in the last bucket.
class Ddp final : public Strategy {
 public:
  Ddp(DdpConfig const& config, StrategyParts const& parts);

  StepResult step(Batch const& batch, StepOptions const& options) override;
  void drain() override {}
  void prepare_evaluation() override { evaluation_buffers_ = averaged_buffers(); }
  at::Tensor predict(at::Tensor const& images) override;
  NamedTensors gather_parameters() override { return replica_.named(replica_.flat()); }
  NamedTensors gather_momentum() override;
  NamedTensors gather_buffers() override { return named(parts_.model, averaged_buffers()); }
  void load(std::map<std::string, at::Tensor> const& tensors) override {
    replica_.load(tensors, buffers_);
  }

 private:
  /// What all ranks learn in every step: sums over ranks, in front of the gradients of block 0, so
  /// that the last bucket brings them along.
  enum Control : std::int64_t { loss, correct, not_finite, stop, fields };

  at::Tensor forward(Batch const& micro);
  void backward(at::Tensor gradient, Landing landing, bool last_micro_batch);
  void launch(Bucket const& bucket);
  void note(at::Tensor const& loss, at::Tensor const& correct);
  StepResult agreed(Batch const& batch);
  [[noreturn]] void refuse_loss(Batch const& batch);
  Buffers averaged_buffers();

  DdpConfig config_;
  StrategyParts parts_;
  Replica replica_;
  BucketPlan plan_;
  Buffers buffers_, evaluation_buffers_;
  at::Tensor reduced_;    ///< control record, padding, gradients: what is summed over ranks
  at::Tensor control_;    ///< [fields] of reduced_
  at::Tensor gradients_;  ///< the rest of reduced_, laid out as the parameters
  std::vector<std::vector<at::Tensor>> gradient_views_;  ///< by block
  std::vector<Work> works_;                              ///< of this step, by bucket
  int first_bad_block_ = -1;  ///< of this rank's pass, known at once on the CPU
  BlockTape tape_;
  Update update_;
};

}  // namespace stratagem
