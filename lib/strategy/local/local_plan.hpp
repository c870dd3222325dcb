#pragma once

#include "strategy/local/fragments.hpp"
#include "strategy/local/local_config.hpp"
#include "strategy/plan.hpp"

namespace stratagem {

/// What local SGD has decided before it runs.
struct LocalPlan {
  LocalConfig config;
  int workers = 1;  ///< of all ranks; rank r plays those from r workers_of_rank() on
  int ranks = 1;
  Fragments fragments;              ///< that parameters are averaged in
  std::int64_t fragment_bytes = 0;  ///< of the largest of them
  std::int64_t exchange_bytes = 0;  ///< sent by each rank to average all of them, on average

  int workers_of_rank() const { return workers / ranks; }
  /// Whether workers ever differ; else every step averages gradients, as DDP does.
  bool apart() const { return workers > 1 && config.inner_steps > 1; }
  /// Whether averagings end with a step of their own, see OuterStep.
  bool has_outer_step() const { return config.outer_lr != 1 || config.outer_momentum != 0; }
  /// Parameters with their optimizer state that a rank holds: workers that never differ share them.
  int replicas_of_rank() const { return apart() ? workers_of_rank() : 1; }
  bool averages_gradients(std::int64_t step) const { return !apart() || step < config.begin_step; }
  /// Steps that workers have made on their own when so many steps are made.
  std::int64_t made_apart(std::int64_t steps) const { return steps - config.begin_step; }
  /// Whether fragments go their own ways, in place of one averaging after which all are alike.
  bool streams() const {
    return config.fragments > 1 || config.delay > 0 || config.mixing_factor > 0;
  }
};

/// Error(usage) where workers cannot be dealt to the ranks evenly, and naming what goes by the
/// gradients of all workers: clipping, loss scaling, sums in place of means.
StrategyPlan plan_of(LocalConfig const& config, PlanInput const& input);

}  // namespace stratagem
