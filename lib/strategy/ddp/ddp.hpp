#pragma once

#include <memory>
#include <optional>

#include "comm/work/work.hpp"
#include "model/block_tape.hpp"
#include "strategy/ddp/ddp_plan.hpp"
#include "strategy/ddp/gradient_sums.hpp"
#include "strategy/shared/replica.hpp"
#include "strategy/shared/step_graph.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/shared/update.hpp"
#include "strategy/state/replicas.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Distributed data parallelism: every rank holds all parameters and runs its part of the global
/// batch; gradients are summed over ranks in buckets during the backward pass (Li et al.,
/// "PyTorch distributed", VLDB 2020), as they are or in a code. What ranks must agree on travels in
/// the last bucket, or beside it if that is coded.
class Ddp final : public Strategy {
 public:
  Ddp(DdpPlan plan, StrategyParts const& parts);

  StepResult step(Batch const& batch, StepOptions const& options) override;
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override {
    return infer(replica_, statistics, tape_, images, parts_.evaluation());
  }
  State state() override;
  void state_replaced() override { replica_.refresh(all()); }

 private:
  /// All parameters and the optimizer's state.
  NamedTensors replicas() const;
  void hash_replicas(bool wanted);
  /// All passes, and the sums over ranks: what a graph can keep.
  void submit(Batch const& batch);
  at::Tensor forward(Batch const& micro);
  void backward(at::Tensor gradient, GradWrite write, bool last_micro_batch);
  void launch(std::size_t bucket);
  /// Until the bucket's gradients are the sum over all ranks.
  void await(std::size_t bucket);
  FlatRange all() const { return {0, replica_.layout().size()}; }
  void update(FlatRange range, double lr, std::optional<at::Tensor> const& refusal = {});
  void update_all(double lr, std::optional<at::Tensor> const& refusal = {});
  /// False when the step is skipped.
  bool update_if_admitted(double lr);
  /// What the step returns; ends the run when a loss or a gradient was not finite, or ranks differ.
  StepResult agreed(Batch const& batch);

  DdpPlan plan_;
  StrategyParts parts_;
  Replica replica_;
  Buffers buffers_;
  at::Tensor reduced_;    ///< status and gradients: what is summed over ranks
  ReplicaHashes hashes_;  ///< of this step, where it compares them
  StepStatus status_;     ///< before the gradients of block 0: the last bucket brings it along
  at::Tensor gradients_;  ///< the rest of reduced_, laid out as the parameters
  std::vector<std::vector<at::Tensor>> gradient_views_;  ///< by block
  std::vector<Work> works_;  ///< of this step: by bucket, or of status_ if they are coded
  std::unique_ptr<GradientSums> coded_;  ///< where gradients travel in a code
  std::int64_t step_ = 0;
  double lr_ = 0;  ///< of this step
  BlockTape tape_;
  Update update_;
  StepGraph graph_;
};

}  // namespace stratagem
