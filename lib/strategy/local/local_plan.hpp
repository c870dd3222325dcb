#pragma once

#include "strategy/local/local_config.hpp"
#include "strategy/plan.hpp"

namespace stratagem {

/// What local SGD has decided before it runs.
struct LocalPlan {
  LocalConfig config;
  int workers = 1;  ///< of all ranks; rank r plays those from r workers_of_rank() on
  int ranks = 1;
  std::int64_t exchange_bytes = 0;  ///< sent by each rank for one averaging, on average

  int workers_of_rank() const { return workers / ranks; }
  /// Whether workers ever differ; else every step averages gradients, as DDP does.
  bool apart() const { return workers > 1 && config.inner_steps > 1; }
  /// Whether averagings end with a step of their own, see OuterStep.
  bool has_outer_step() const { return config.outer_lr != 1 || config.outer_momentum != 0; }
  /// Parameters with their optimizer state that a rank holds: workers that never differ share them.
  int replicas_of_rank() const { return apart() ? workers_of_rank() : 1; }
  bool averages_gradients(std::int64_t step) const { return !apart() || step < config.begin_step; }
  /// Of other steps: whether the averaging of parameters follows.
  bool averages_parameters(std::int64_t step) const {
    return (step + 1 - config.begin_step) % config.inner_steps == 0;
  }
};

/// Error(usage) where workers cannot be dealt to the ranks evenly, and naming what goes by the
/// gradients of all workers: clipping, loss scaling, sums in place of means.
StrategyPlan plan_of(LocalConfig const& config, PlanInput const& input);
/// Nothing where the plan is another strategy's.
LocalPlan const* local_of(StrategyPlan const& plan);

}  // namespace stratagem
