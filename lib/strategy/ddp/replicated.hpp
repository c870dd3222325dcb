#pragma once

#include <memory>

#include "comm/work/work.hpp"
#include "strategy/data_parallel/data_parallel.hpp"
#include "strategy/ddp/ddp_plan.hpp"
#include "strategy/ddp/gradient_sums.hpp"
#include "strategy/pass/replica_gradients.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Distributed data parallelism: every rank holds all parameters; gradients are summed over ranks
/// in buckets during the backward pass (Li et al., "PyTorch distributed", VLDB 2020), as they are
/// or in a code. The status travels in the last bucket, or beside it if that is coded.
class Replicated final : public DataParallel {
 public:
  /// Over all ranks of `group`.
  Replicated(DdpPlan plan, StrategyParts const& parts, Communicator& group);

  StepStatus& status() override { return status_; }
  Update& update() override { return update_; }

  void begin_step(std::int64_t step, bool kept) override;
  void begin_pass(int number) override;
  std::span<at::Tensor const> unshard(int block, Direction direction) override {
    return store_.unshard(block, direction);
  }
  GradientTarget gradients(int block) override { return store_.gradients(block); }
  void landed(int block) override;
  void end_passes() override;

  void await_status() override;
  void await_sums() override;
  void apply(double lr, std::optional<at::Tensor> const& refusal) override;
  double gradient_norm() override { return stratagem::gradient_norm({&store_.flat(), 1}); }
  [[noreturn]] void refuse_gradient(std::int64_t step) const override;

  NamedTensors replicas() const override;
  State state() override;
  void state_replaced() override { replica_.refresh(all()); }

 private:
  std::vector<Bucket> const& buckets() const { return plan_.buckets.buckets; }
  FlatRange all() const { return {0, replica_.layout().size()}; }
  /// Begins the sum of the next bucket.
  void launch();
  /// Until the gradients of the next bucket are the sum over all ranks.
  void await();
  void apply(FlatRange range, double lr, std::optional<at::Tensor> const& refusal);

  DdpPlan plan_;
  StrategyParts parts_;
  Communicator& group_;
  Replica replica_;
  at::Tensor reduced_;      ///< status and gradients: what is summed over ranks
  StepStatus status_;       ///< before the gradients of block 0
  ReplicaGradients store_;  ///< the rest of reduced_, laid out as the parameters
  std::unique_ptr<GradientSums> sums_;
  Work status_sum_;  ///< where the sums do not take it along
  Update update_;
  std::int64_t step_ = 0;
  bool sums_begin_ = false;                 ///< in the pass under way
  std::size_t launched_ = 0, awaited_ = 0;  ///< buckets of this step
};

}  // namespace stratagem
