#include "strategy/local/local_sgd.hpp"

#include <ATen/ATen.h>

#include "base/error.hpp"

namespace stratagem {

LocalSgd::LocalSgd(LocalPlan const& plan, StrategyParts const& parts)
    : plan_(plan),
      workers_({.all = plan.workers,
                .of_rank = plan.workers_of_rank(),
                .micro_batches = plan.config.micro_batches,
                .apart = plan.apart()},
               parts) {
  if (plan_.has_outer_step())
    outer_.emplace(plan_.config.outer_lr, plan_.config.outer_momentum, first().layout().size(),
                   first().flat().scalar_type(), parts.device);
}

void LocalSgd::begin_round(Round const& round) {
  workers_.leave_mean();
  if (outer_ && round.first_step <= plan_.config.begin_step) outer_->begin_at(first().flat());
}

StepResult LocalSgd::step(Batch const& batch, StepOptions const& options) {
  bool const together = plan_.averages_gradients(batch.step);
  bool const compares = options.compare_replicas && together;
  auto own = workers_.run_passes(
      batch, options, compares ? ReplicaHashes(workers_.replicas(in_common())) : ReplicaHashes(),
      [&](std::size_t worker) {
        if (!together) workers_.step_alone(worker, batch, options.lr);
      });

  if (together) {
    auto const agreed = step_together(batch, options.lr);
    if (!plan_.apart()) return agreed;
    own.requests = agreed.requests;
    if (outer_ && batch.step + 1 == plan_.config.begin_step) outer_->begin_at(first().flat());
  } else if (plan_.averages_parameters(batch.step)) {
    own.requests = workers_.average_parameters(batch).requests;
    if (outer_) outer_->apply(first().flat());
    workers_.follow_first();
  }
  return own;
}

StepResult LocalSgd::step_together(Batch const& batch, double lr) {
  auto const result = workers_.exchange(workers_.gradients(), batch);
  auto const& sum = workers_.gradients().front();
  if (plan_.apart()) sum.mul_(1.0 / plan_.workers);
  for (auto& learner : workers_.learners()) workers_.apply(learner, sum, lr);
  auto const& [replica, update] = workers_.learners().front();
  if (!update.finite())
    throw AgreedError(bad_gradient(batch.step, "summed over all workers", replica.views(sum, "")));
  return result;
}

void LocalSgd::state_replaced() {
  workers_.state_replaced();
  if (outer_ && !outer_->has_begun()) outer_->begin_at(first().flat());
}

}  // namespace stratagem
