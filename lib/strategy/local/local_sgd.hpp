#pragma once

#include <optional>

#include "strategy/local/local_plan.hpp"
#include "strategy/local/outer_step.hpp"
#include "strategy/shared/virtual_workers.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Local SGD: every worker makes its own steps from its own part of each global batch; every
/// inner_steps steps all continue from the mean of their parameters. Of its own a worker keeps its
/// momentum, as in Lin et al. (arXiv 1808.07217) and PyTorch's PostLocalSGDOptimizer, and its
/// running statistics, as in every strategy. With an outer step all go on from where that leads, as
/// in DiLoCo (arXiv 2311.08105). Before begin_step, and always with inner_steps 1,
/// gradients are averaged in place of parameters: these steps are DDP's, bit for bit.
///
/// Between two averagings ranks hear nothing of each other: requests, and losses and gradients that
/// are not finite, become known at the next one. Rounds may end anywhere, see VirtualWorkers.
class LocalSgd final : public Strategy {
 public:
  LocalSgd(LocalPlan const& plan, StrategyParts const& parts);

  void begin_round(Round const& round) override;
  StepResult step(Batch const& batch, StepOptions const& options) override;
  void drain() override { workers_.show_mean(); }
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override {
    return workers_.predict(images, statistics);
  }
  State state() override { return workers_.state(in_common()); }
  void state_replaced() override;

 private:
  Replica& first() { return workers_.learners().front().replica; }
  /// Of optimizer and outer step.
  OptimizerState in_common() const { return outer_ ? outer_->state() : workers_.in_common(); }
  /// The update that all workers make with the sum of their gradients.
  StepResult step_together(Batch const& batch, double lr);

  LocalPlan plan_;
  VirtualWorkers workers_;
  std::optional<OuterStep> outer_;
};

}  // namespace stratagem
