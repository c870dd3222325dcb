#include "strategy/shared/virtual_workers.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "strategy/pass/micro_batches.hpp"
#include "strategy/shared/worker_sum.hpp"

namespace stratagem {

using trace::Phase;

namespace {

/// A multiple of 2^-30: sums of these over steps and ranks are exact, so that the mean loss of an
/// epoch does not depend on where rounds end.
double on_grid(double loss) {
  return std::ldexp(std::nearbyint(std::ldexp(loss, 30)), -30);
}

}  // namespace

VirtualWorkers::VirtualWorkers(Counts const& counts, StrategyParts const& parts)
    : counts_(counts),
      parts_(parts),
      status_(parts.allocate(gpu::MemoryCategory::gradients, status_room)),
      passes_(parts) {
  // An update takes the mean over the workers whose gradients it is given: of all, where they never
  // differ, else of one.
  int const summed = counts.apart ? 1 : counts.all;
  auto const layout = make_layout(parts.model);
  for (int i = 0; i < (counts.apart ? counts.of_rank : 1); ++i)
    learners_.push_back({Replica(parts.model, parts.precision.compute, parts.device, parts.seed),
                         Update(parts.optimizer, parts.precision, summed, counts.micro_batches,
                                all_elements(layout), parts.device)});
  for (int i = 0; i < counts.of_rank; ++i) {
    buffers_.push_back(make_buffers(parts.model, parts.device, parts.precision.compute));
    with_tails_.push_back(
        parts.allocate(gpu::MemoryCategory::gradients, layout.size() + counts.tail));
    gradients_.push_back(with_tails_.back().narrow(0, 0, layout.size()));
    stores_.emplace_back(learner_of(static_cast<std::size_t>(i)).replica, gradients_.back());
  }
  if (counts.apart) gradients_.front().copy_(learners_.front().replica.flat());
}

void VirtualWorkers::leave_mean() {
  if (!counts_.apart) return;
  auto& first = learners_.front().replica;
  first.flat().copy_(gradients_.front());
  first.refresh(all());
}

void VirtualWorkers::show_mean() {
  if (!counts_.apart) return;
  auto& first = learners_.front().replica;
  gradients_.front().copy_(first.flat());
  if (!differ_) return;
  status_.begin({});
  status_.clear();
  average_parameters({.step = last_step_});
  first.refresh(all());
}

StepResult VirtualWorkers::run_passes(Batch const& batch, StepOptions const& options,
                                      ReplicaHashes hashes,
                                      std::function<void(std::size_t)> const& after) {
  last_step_ = batch.step;
  status_.begin(options, std::move(hashes));
  status_.clear();
  StepResult own{.labels = batch.labels.numel()};
  auto const shares = split(batch, counts_.of_rank);
  for (std::size_t worker = 0; worker < shares.size(); ++worker) {
    pass(worker, shares[worker], own);
    after(worker);
  }
  own.loss = on_grid(own.loss / (counts_.of_rank * counts_.micro_batches));
  return own;
}

void VirtualWorkers::pass(std::size_t worker, Batch const& share, StepResult& own) {
  auto const noted = [&](CrossEntropy const& loss) {
    status_.note(loss, passes_.kept());
    auto const value = loss.loss.item<double>();
    if (!std::isfinite(value) && !failure_)
      failure_ = bad_loss(
          str("the loss is not finite at step ", share.step, ", of worker ", number_of(worker)),
          parts_.model, passes_.kept().first_non_finite());
    own.loss += value;
    own.correct += loss.correct.item<std::int64_t>();
  };
  passes_.run_all(
      stores_[worker], buffers_[worker], share, counts_.micro_batches,
      [this](Batch const& micro) { return parts_.context_of(micro, 1); }, noted);
}

StatusTerms VirtualWorkers::terms() const {
  auto const ranks = counts_.all / counts_.of_rank;
  return {.ranks = ranks, .reporters = ranks, .passes = counts_.of_rank * counts_.micro_batches};
}

void VirtualWorkers::apply(Learner& learner, at::Tensor const& gradients, double lr) {
  parts_.recorder.enter(Phase::optimizer);
  learner.update.begin();
  learner.update.apply(all(), learner.replica, gradients, lr);
}

void VirtualWorkers::step_alone(std::size_t worker, Batch const& batch, double lr) {
  auto& learner = learner_of(worker);
  apply(learner, gradients_[worker], lr);
  differ_ = true;
  if (!learner.update.finite() && !failure_)
    failure_ = bad_gradient(batch.step, str("of worker ", number_of(worker)),
                            learner.replica.views(gradients_[worker], ""));
}

void VirtualWorkers::average_parameters(Batch const& batch) {
  std::vector<at::Tensor> parameters;
  for (auto const& learner : learners_) parameters.push_back(learner.replica.flat());
  exchange(parameters, batch);
  parts_.recorder.enter(Phase::optimizer);
  learners_.front().replica.flat().mul_(1.0 / counts_.all);
}

void VirtualWorkers::follow_first() {
  for (auto& learner : learners_) {
    learner.replica.flat().copy_(learners_.front().replica.flat());
    learner.replica.refresh(all());
  }
  differ_ = false;
}

StepResult VirtualWorkers::exchange(std::span<at::Tensor const> tensors, Batch const& batch) {
  auto begun = begin_exchange(tensors, batch);
  begun.sum.wait_on_stream();
  return begun.result;
}

VirtualWorkers::Begun VirtualWorkers::begin_exchange(std::span<at::Tensor const> tensors,
                                                     Batch const& batch) {
  parts_.recorder.enter(Phase::comm_exposed);
  auto& communicator = parts_.world.all();
  if (failure_) status_.refuse();
  status_.seal(status_.fingerprint(communicator.collectives()));
  auto agreement = communicator.all_reduce(status_.memory());
  auto sum = begin_sum_over_workers(tensors, communicator);
  agreement.wait_on_stream();
  status_.fetch_sum();
  auto const [result, finite, alike] = status_.result(batch, terms());
  if (!alike || !finite) sum.wait_on_stream();  // nothing is under way when the run ends
  if (!alike) refuse_difference(communicator, status_.hashes(), batch.step);
  if (!finite) agree(communicator, failure_);
  ensures(finite, "a rank that refuses says why");
  return {result, std::move(sum)};
}

double VirtualWorkers::spread() const {
  auto const& mean = learners_.front().replica.flat();
  auto const squares = parts_.world.all().allocate(counts_.all, at::kDouble);
  for (std::size_t worker = 0; worker < learners_.size(); ++worker) {
    auto const& own = worker == 0 ? gradients_.front() : learners_[worker].replica.flat();
    at::Tensor const difference = own - mean;
    squares[number_of(worker)] = std::pow(gradient_norm({&difference, 1}), 2);
  }
  parts_.world.all().all_reduce(squares).wait_on_stream();
  return std::sqrt(squares.mean().item<double>()) / gradient_norm({&mean, 1});
}

OptimizerState VirtualWorkers::in_common() const {
  return counts_.apart ? OptimizerState() : learners_.front().update.state();
}

NamedTensors VirtualWorkers::replicas(OptimizerState const& in_common) const {
  auto const& replica = learners_.front().replica;
  auto tensors = replica.views(replica.flat(), "parameters/");
  for (auto const& [kind, flat] : in_common)
    std::ranges::move(replica.views(flat, kind + "/"), std::back_inserter(tensors));
  return tensors;
}

std::vector<ParameterState> VirtualWorkers::own_state(int number) const {
  auto const worker = number - number_of(0);
  bool const is_here = worker >= 0 && worker < counts_.of_rank;
  auto const& [replica, update] = learners_[static_cast<std::size_t>(is_here ? worker : 0)];
  auto state = replica.state(update.state());
  if (worker == 0) state.front().pieces = pieces_of(replica.layout(), all(), gradients_.front());
  for (auto& of : state) {
    of.worker = number;
    if (!is_here) of.pieces.clear();
  }
  return state;
}

State VirtualWorkers::state(OptimizerState const& in_common) {
  auto& [replica, update] = learners_.front();
  State state{.of_parameters = replica.state(in_common),
              .counters = update.counters(),  // all have made as many; see state_replaced()
              .replicas = replicas(in_common)};
  if (counts_.apart)
    for (int worker = 0; worker < counts_.all; ++worker)
      std::ranges::move(own_state(worker), std::back_inserter(state.of_parameters));
  for (std::size_t worker = 0; worker < buffers_.size(); ++worker)
    state.buffers.emplace(number_of(worker), buffers_[worker]);
  return state;
}

void VirtualWorkers::state_replaced() {
  auto const counters = learners_.front().update.counters();
  for (auto& learner : learners_) {
    learner.replica.refresh(all());
    for (auto const& [name, value] : learner.update.counters()) *value = *counters.at(name);
  }
}

}  // namespace stratagem
