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
/// In streaming DiLoCo (arXiv 2501.18512) that is done with one fragment of the parameters after
/// the other. What workers had when it was sent is averaged while they make `delay` more steps;
/// then each moves its own parameters to the result, but for a share that it keeps.
///
/// Between two sendings ranks hear nothing of each other: requests, and losses and gradients that
/// are not finite, become known at the next one. Rounds may end anywhere, see VirtualWorkers: the
/// mean of what is under way is awaited, and taken when it would have been.
class LocalSgd final : public Strategy {
 public:
  LocalSgd(LocalPlan const& plan, StrategyParts const& parts);

  void begin_round(Round const& round) override;
  StepResult step(Batch const& batch, StepOptions const& options) override;
  void drain() override;
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override {
    return workers_.predict(images, statistics);
  }
  State state() override { return workers_.state(in_common()); }
  void state_replaced() override;

 private:
  Replica& first() { return workers_.learners().front().replica; }
  /// Of optimizer and outer step, and what is under way.
  OptimizerState in_common() const;
  /// The update that all workers make with the sum of their gradients.
  StepResult step_together(Batch const& batch, double lr);

  /// Where the mean of a fragment comes to lie; laid out as the parameters.
  at::Tensor const& place();
  /// The sum of what all have in `range` begins.
  Requests send(FlatRange range, Batch const& batch);
  /// The sum that is under way is there, and becomes the mean.
  void await_mean();
  void take(FlatRange range);
  /// Between rounds: what a checkpoint does not know of is the mean that it has.
  void complete_arriving(std::int64_t step);

  LocalPlan plan_;
  StrategyParts parts_;
  VirtualWorkers workers_;
  std::optional<OuterStep> outer_;
  at::Tensor arriving_;              ///< what is under way, else 0; undefined without a delay
  std::optional<FlatRange> summed_;  ///< at place(), once sum_ is there
  Work sum_;
};

}  // namespace stratagem
