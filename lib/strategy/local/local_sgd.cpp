#include "strategy/local/local_sgd.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "strategy/local/worker_sum.hpp"
#include "strategy/shared/cross_entropy.hpp"
#include "strategy/shared/micro_batches.hpp"

namespace stratagem {

using trace::Phase;

namespace {

/// A multiple of 2^-30: sums of these over steps and ranks are exact, so that the mean loss of an
/// epoch does not depend on where rounds end.
double on_grid(double loss) {
  return std::ldexp(std::nearbyint(std::ldexp(loss, 30)), -30);
}

}  // namespace

LocalSgd::LocalSgd(LocalPlan const& plan, StrategyParts const& parts)
    : plan_(plan),
      parts_(parts),
      control_(parts.allocate(gpu::MemoryCategory::gradients, control_room)),
      tape_(parts.model.blocks, parts.recompute) {
  // An update takes the mean over the workers whose gradients it is given: of all, where they never
  // differ, else of one.
  int const summed = plan_.apart() ? 1 : plan_.workers;
  auto const layout = make_layout(parts.model);
  for (int i = 0; i < plan_.replicas_of_rank(); ++i)
    learners_.push_back({Replica(parts.model, parts.precision.compute, parts.device, parts.seed),
                         Update(parts.optimizer, parts.precision, summed,
                                plan_.config.micro_batches, all_elements(layout), parts.device)});
  for (int i = 0; i < plan_.workers_of_rank(); ++i) {
    buffers_.push_back(make_buffers(parts.model, parts.device, parts.precision.compute));
    gradients_.push_back(parts.allocate(gpu::MemoryCategory::gradients, layout.size()));
    auto& views = gradient_views_.emplace_back();
    for (int block = 0; block < tape_.blocks(); ++block)
      views.push_back(views_of(gradients_.back(), learners_.front().replica.layout(), block));
  }
  if (plan_.apart()) gradients_.front().copy_(learners_.front().replica.flat());
  if (plan_.has_outer_step())
    outer_.emplace(plan_.config.outer_lr, plan_.config.outer_momentum, layout.size(),
                   gradients_.front().scalar_type(), parts.device);
}

void LocalSgd::begin_round(Round const& round) {
  if (!plan_.apart()) return;
  auto& first = learners_.front().replica;
  first.flat().copy_(gradients_.front());
  first.refresh(all());
  if (outer_ && round.first_step <= plan_.config.begin_step) outer_->begin_at(first.flat());
}

StepResult LocalSgd::step(Batch const& batch, StepOptions const& options) {
  bool const together = plan_.averages_gradients(batch.step);
  last_step_ = batch.step;
  control_.begin(options);
  control_.clear();
  hashes_ = options.compare_replicas && together ? ReplicaHashes(replicas()) : ReplicaHashes();
  StepResult own{.labels = batch.labels.numel()};
  auto const shares = split(batch, plan_.workers_of_rank());
  for (std::size_t worker = 0; worker < shares.size(); ++worker) {
    pass(worker, shares[worker], own);
    if (!together) step_alone(worker, batch, options.lr);
  }
  own.loss = on_grid(own.loss / (plan_.workers_of_rank() * plan_.config.micro_batches));

  if (together) {
    auto const agreed = step_together(batch, options.lr);
    if (!plan_.apart()) return agreed;
    own.requests = agreed.requests;
    if (outer_ && batch.step + 1 == plan_.config.begin_step)
      outer_->begin_at(learners_.front().replica.flat());
  } else if (plan_.averages_parameters(batch.step)) {
    own.requests = average_parameters(batch).requests;
    if (outer_) outer_->apply(learners_.front().replica.flat());
    for (auto& learner : learners_) {
      learner.replica.flat().copy_(learners_.front().replica.flat());
      learner.replica.refresh(all());
    }
    differ_ = false;
  }
  return own;
}

void LocalSgd::pass(std::size_t worker, Batch const& share, StepResult& own) {
  auto const& replica = learner_of(worker).replica;
  auto write = GradWrite::overwrite;
  for (auto const& micro : split(share, plan_.config.micro_batches)) {
    parts_.recorder.enter(Phase::forward);
    auto const logits =
        forward(replica, buffers_[worker], tape_, micro.inputs, parts_.context_of(micro, 1));
    auto const loss = cross_entropy(logits, micro.labels);
    control_.note(loss, tape_);
    auto const value = loss.loss.item<double>();
    if (!std::isfinite(value) && !failure_) failure_ = bad_loss(micro.step, worker);
    own.loss += value;
    own.correct += loss.correct.item<std::int64_t>();

    parts_.recorder.enter(Phase::backward);
    at::Tensor gradient = loss.gradient;
    for (int block = tape_.blocks() - 1; block >= 0; --block)
      gradient = tape_.backward(block, gradient,
                                gradient_views_[worker][static_cast<std::size_t>(block)], write);
    write = GradWrite::accumulate;
  }
}

Error LocalSgd::bad_loss(std::int64_t step, std::size_t worker) const {
  auto const block = tape_.first_non_finite();
  return {ExitCode::non_finite,
          str("the loss is not finite at step ", step, ", of worker ", number_of(worker)),
          block < 0 ? "though every block's output is"
                    : "first in the output of block " +
                          parts_.model.blocks[static_cast<std::size_t>(block)]->name(),
          "lower optimizer.lr or look at the data"};
}

void LocalSgd::apply(Learner& learner, at::Tensor const& gradients, double lr) {
  parts_.recorder.enter(Phase::optimizer);
  learner.update.begin();
  learner.update.apply(all(), learner.replica.flat(), gradients, lr);
  learner.replica.refresh(all());
}

void LocalSgd::step_alone(std::size_t worker, Batch const& batch, double lr) {
  auto& learner = learner_of(worker);
  apply(learner, gradients_[worker], lr);
  differ_ = true;
  if (!learner.update.finite() && !failure_)
    failure_ = bad_gradient(batch.step, str("of worker ", number_of(worker)),
                            learner.replica.views(gradients_[worker], ""));
}

StepResult LocalSgd::step_together(Batch const& batch, double lr) {
  auto const result = exchange(gradients_, batch);
  auto const& sum = gradients_.front();
  if (plan_.apart()) sum.mul_(1.0 / plan_.workers);
  for (auto& learner : learners_) apply(learner, sum, lr);
  auto const& [replica, update] = learners_.front();
  if (!update.finite())
    throw AgreedError(bad_gradient(batch.step, "summed over all workers", replica.views(sum, "")));
  return result;
}

StepResult LocalSgd::average_parameters(Batch const& batch) {
  std::vector<at::Tensor> parameters;
  for (auto const& learner : learners_) parameters.push_back(learner.replica.flat());
  auto const result = exchange(parameters, batch);
  parts_.recorder.enter(Phase::optimizer);
  learners_.front().replica.flat().mul_(1.0 / plan_.workers);
  return result;
}

StepResult LocalSgd::exchange(std::span<at::Tensor const> tensors, Batch const& batch) {
  parts_.recorder.enter(Phase::comm_exposed);
  auto& communicator = parts_.communicator;
  if (failure_) control_.refuse();
  control_.seal(fingerprint(communicator.collectives(), hashes_));
  auto agreement = communicator.all_reduce(control_.memory());
  sum_over_workers(tensors, communicator);
  agreement.wait_on_stream();
  control_.fetch_sum();
  auto const [result, finite, alike] =
      control_.result(batch, plan_.ranks, plan_.workers_of_rank() * plan_.config.micro_batches);
  if (!alike) refuse_difference(communicator, hashes_, batch.step);
  if (!finite) agree(communicator, failure_);
  ensures(finite, "a rank that refuses says why");
  return result;
}

void LocalSgd::drain() {
  if (!plan_.apart()) return;
  auto& first = learners_.front().replica;
  gradients_.front().copy_(first.flat());
  if (!differ_) return;
  control_.begin({});
  control_.clear();
  hashes_ = {};
  average_parameters({.step = last_step_});
  first.refresh(all());
}

NamedTensors LocalSgd::replicas() const {
  auto const& [replica, update] = learners_.front();
  auto tensors = replica.views(replica.flat(), "parameters/");
  if (outer_)
    for (auto const& [kind, flat] : outer_->state())
      std::ranges::copy(replica.views(flat, kind + "/"), std::back_inserter(tensors));
  if (plan_.apart()) return tensors;
  for (auto const& [kind, flat] : update.state()) {
    auto const views = replica.views(flat, kind + "/");
    tensors.insert(tensors.end(), views.begin(), views.end());
  }
  return tensors;
}

std::vector<ParameterState> LocalSgd::own_state(int number) const {
  auto const worker = number - number_of(0);
  bool const is_here = worker >= 0 && worker < plan_.workers_of_rank();
  auto const& [replica, update] = learners_[static_cast<std::size_t>(is_here ? worker : 0)];
  auto state = replica.state(update.state());
  if (worker == 0) state.front().pieces = pieces_of(replica.layout(), all(), gradients_.front());
  for (auto& of : state) {
    of.worker = number;
    if (!is_here) of.pieces.clear();
  }
  return state;
}

State LocalSgd::state() {
  auto const& [replica, update] = learners_.front();
  auto const shared = outer_ ? outer_->state() : plan_.apart() ? OptimizerState() : update.state();
  State state{.of_parameters = replica.state(shared), .replicas = replicas()};
  if (plan_.apart())
    for (int worker = 0; worker < plan_.workers; ++worker)
      std::ranges::move(own_state(worker), std::back_inserter(state.of_parameters));
  for (std::size_t worker = 0; worker < buffers_.size(); ++worker)
    state.buffers.emplace(number_of(worker), buffers_[worker]);
  return state;
}

void LocalSgd::state_replaced() {
  for (auto& learner : learners_) learner.replica.refresh(all());
  if (outer_ && !outer_->has_begun()) outer_->begin_at(learners_.front().replica.flat());
}

}  // namespace stratagem
