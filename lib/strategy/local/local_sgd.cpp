#include "strategy/local/local_sgd.hpp"

#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.hpp"

namespace stratagem {

using trace::Phase;

namespace {

at::Tensor part(at::Tensor const& flat, FlatRange range) {
  return flat.narrow(0, range.begin, range.size());
}

}  // namespace

LocalSgd::LocalSgd(LocalPlan const& plan, StrategyParts const& parts)
    : plan_(plan),
      parts_(parts),
      workers_({.all = plan.workers,
                .of_rank = plan.workers_of_rank(),
                .micro_batches = plan.config.micro_batches,
                .apart = plan.apart()},
               parts) {
  if (plan_.has_outer_step())
    outer_.emplace(plan_.config.outer_lr, plan_.config.outer_momentum, first().layout().size(),
                   first().flat().scalar_type(), parts.device);
  if (plan_.config.delay > 0)
    arriving_ = parts.allocate(gpu::MemoryCategory::optimizer, first().layout().size());
}

OptimizerState LocalSgd::in_common() const {
  auto state = outer_ ? outer_->state() : workers_.in_common();
  if (arriving_.defined()) state.emplace_back(LocalConfig::arriving, arriving_);
  return state;
}

void LocalSgd::begin_round(Round const& round) {
  complete_arriving(round.first_step);
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
  } else {
    auto const made = plan_.made_apart(batch.step + 1);
    if (auto const range = plan_.fragments.sent_after(made)) own.requests = send(*range, batch);
    if (auto const range = plan_.fragments.taken_after(made)) take(*range);
  }
  return own;
}

void LocalSgd::drain() {
  await_mean();
  workers_.show_mean();
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

/// A worker's gradients are not needed after its step.
at::Tensor const& LocalSgd::place() {
  if (arriving_.defined()) return arriving_;
  return plan_.config.mixing_factor > 0 ? workers_.gradients().front() : first().flat();
}

Requests LocalSgd::send(FlatRange range, Batch const& batch) {
  std::vector<at::Tensor> parameters;
  for (auto const& learner : workers_.learners())
    parameters.push_back(part(learner.replica.flat(), range));
  if (!place().is_same(first().flat())) {
    parts_.recorder.enter(Phase::optimizer);
    parameters.front() = part(place(), range).copy_(parameters.front());
  }
  auto begun = workers_.begin_exchange(parameters, batch);
  sum_ = std::move(begun.sum);
  summed_ = range;
  return begun.result.requests;
}

void LocalSgd::await_mean() {
  if (!summed_) return;
  parts_.recorder.enter(Phase::comm_exposed);
  sum_.wait_on_stream();
  parts_.recorder.enter(Phase::optimizer);
  part(place(), *summed_).mul_(1.0 / plan_.workers);
  summed_.reset();
}

void LocalSgd::take(FlatRange range) {
  await_mean();
  auto const mean = part(place(), range);
  if (outer_) outer_->apply(range, mean);
  if (!plan_.streams()) return workers_.follow_first();
  auto const kept = plan_.config.mixing_factor;
  for (auto& learner : workers_.learners()) {
    auto const own = part(learner.replica.flat(), range);
    if (kept > 0)
      own.mul_(kept).add_(mean, 1 - kept);
    else
      own.copy_(mean);
    learner.replica.refresh(range);
  }
  if (arriving_.defined()) mean.zero_();
}

void LocalSgd::complete_arriving(std::int64_t step) {
  auto const range = plan_.fragments.under_way_after(plan_.made_apart(step));
  auto const& layout = first().layout();
  for (int block = 0; range && block < layout.blocks(); ++block) {
    auto const held = layout.range(block);
    if (held.begin < range->begin || held.end > range->end) continue;
    auto const mean = part(arriving_, held);
    if (!mean.any().item<bool>()) mean.copy_(part(first().flat(), held));
  }
}

void LocalSgd::state_replaced() {
  workers_.state_replaced();
  if (outer_ && !outer_->has_begun()) outer_->begin_at(first().flat());
}

}  // namespace stratagem
