#include "strategy/ps/offline/simulation.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/shared/update.hpp"

namespace stratagem {

PsSimulation::PsSimulation(PsPlan const& plan, ClusterModel const& cluster,
                           StrategyParts const& parts, SimulationInputs inputs)
    : parts_(parts),
      workers_(plan.workers()),
      policy_(plan.policy),
      inputs_(std::move(inputs)),
      pass_(parts, plan.config.micro_batches),
      code_(make_push_code(plan.config.compression, pass_.replica().layout(), parts.seed)),
      store_(policy_, parts.optimizer, workers_, pass_.replica().flat().clone(),
             all_elements(pass_.replica().layout()).vectors),
      own_(make_own_updates(policy_, parts.optimizer, all_elements(pass_.replica().layout()),
                            store_.parameters().options())),
      cluster_(cluster, workers_),
      scales_(static_cast<std::size_t>(policy_.asynchronous() ? workers_ : 1),
              make_gradient_scale(plan, parts.optimizer, parts.precision)),
      dealt_(static_cast<std::size_t>(workers_)),
      paces_(static_cast<std::size_t>(workers_), PullSchedule(policy_)) {
  if (policy_.asynchronous()) clock_.emplace(policy_, workers_);
  for (int worker = 0; worker < workers_; ++worker) {
    buffers_.push_back(make_buffers(parts.model, parts.device, parts.precision.compute));
    if (code_) residuals_.push_back(code_->make_residual());
  }
}

void PsSimulation::load(TensorMap const& tensors) {
  pass_.replica().load(tensors);
  store_.parameters().copy_(pass_.replica().flat());
  for (auto& buffers : buffers_) stratagem::load(parts_.model, tensors, buffers);
}

void PsSimulation::load_counters(Counters const& counters) {
  for (std::size_t i = 0; i < scales_.size(); ++i) {
    int const worker = policy_.asynchronous() ? static_cast<int>(i) : -1;
    stratagem::load_counters({.counters = scales_[i].counters(), .counters_of = worker}, counters);
  }
}

double PsSimulation::run_round(std::int64_t first_step, std::int64_t end_step) {
  loss_ = 0;
  shares_ = 0;
  if (policy_.asynchronous())
    run_asynchronous(first_step, end_step);
  else
    run_synchronous(first_step, end_step);
  return loss_ / static_cast<double>(shares_);
}

void PsSimulation::run_synchronous(std::int64_t first_step, std::int64_t end_step) {
  FlatRange const all{0, store_.parameters().numel()};
  // What workers compute with, oldest first, and when it was made.
  std::deque<std::pair<at::Tensor, double>> versions(static_cast<std::size_t>(policy_.delay) + 1,
                                                     {store_.parameters().clone(), cluster_.now()});
  std::vector<double> free_at(static_cast<std::size_t>(workers_), cluster_.now());
  for (auto step = first_step; step < end_step; ++step) {
    auto const [in_use, in_use_at] = versions.front();
    double complete = 0;
    for (int worker = 0; worker < workers_; ++worker) {
      compute(worker, in_use, {step, {worker, workers_}});
      auto& free = free_at[static_cast<std::size_t>(worker)];
      free = std::max(free, in_use_at + cluster_.model().message) + cluster_.next_pass(worker, 1);
      complete = std::max(complete, free + cluster_.model().message);
    }
    store_.add_up(all);
    bool const applied = admit(scales_.front(), store_.sum());
    if (applied) {
      store_.begin_update();
      store_.apply_sum(all, inputs_.lr(step), scales_.front().value());
    }
    store_.publish(all, inputs_.lr(step));
    versions.pop_front();
    versions.emplace_back(store_.outgoing().clone(), cluster_.treat(complete, workers_));
    counts_.lags.add(step == first_step ? 0 : policy_.delay);
    counts_.pushes += workers_;
    counts_.pulls += workers_;
    counts_.updates += applied ? 1 : 0;
    counts_.dropped += applied ? 0 : workers_;
    counts_.overflowed += applied ? 0 : workers_;
  }
}

void PsSimulation::run_asynchronous(std::int64_t first_step, std::int64_t end_step) {
  round_ = ShareSequence(first_step, end_step, workers_, policy_.pushes);
  next_share_ = round_.dealt_at_first();
  clock_->restart();
  store_.begin_round();
  for (int worker = 0; worker < workers_; ++worker) {
    auto const first = round_.first_of(worker);
    dealt_[static_cast<std::size_t>(worker)] = {first.begin(), first.end()};
    paces_[static_cast<std::size_t>(worker)].begin_round();
    go_on(worker, true);
  }
  release();
  while (auto const worker = cluster_.next()) {
    receive(*worker);
    release();
  }
  store_.end_round();
}

void PsSimulation::go_on(int worker, bool pulls) {
  if (!dealt_[static_cast<std::size_t>(worker)].empty())
    return cluster_.start(worker, 1.0 / policy_.pushes, pulls);
  if (!clock_->finish(worker)) return;
  store_.apply_collected();
  ++counts_.updates;
}

void PsSimulation::release() {
  for (auto free = clock_->release(); !free.empty(); free = clock_->release())
    for (int const worker : free) {
      store_.hand_out(worker, lr_);
      if (policy_.cached_reads)
        paces_[static_cast<std::size_t>(worker)].allow(clock_->cached_reads(worker));
      go_on(worker, true);
    }
}

void PsSimulation::receive(int worker) {
  auto& dealt = dealt_[static_cast<std::size_t>(worker)];
  auto const share = dealt.front();
  dealt.pop_front();
  if (next_share_ < round_.count()) dealt.push_back(round_.at(next_share_++));
  compute(worker, store_.handed(worker), share);
  bool const usable = admit(scale_of(worker), store_.slot(worker));
  auto& pace = paces_[static_cast<std::size_t>(worker)];
  bool const pulls = pace.next();
  pace.learn(clock_->lag(worker));
  auto const verdict = clock_->push(worker, {.step = share.step, .usable = usable, .pulls = pulls});
  counts_.pulls += pulls ? 1 : 0;
  ++counts_.pushes;
  counts_.lags.add(verdict.lag);
  counts_.dropped += verdict.applied ? 0 : 1;
  counts_.overflowed += usable ? 0 : 1;
  counts_.updates += verdict.completes ? 1 : 0;
  if (own_ && usable && !pulls)
    own_->apply(store_.handed(worker), store_.slot(worker),
                {.lr = inputs_.lr(share.step), .factor = scale_of(worker).value()});
  if (verdict.applied) {
    lr_ = inputs_.lr(share.step);
    store_.take(worker, {.lr = lr_, .weight = verdict.weight, .factor = scale_of(worker).value()},
                verdict.completes);
  }
  if (clock_->computing(worker)) go_on(worker, false);
}

void PsSimulation::compute(int worker, at::Tensor const& parameters, Share const& share) {
  pass_.replica().flat().copy_(parameters);
  auto const batch = inputs_.batch(share);
  auto const result =
      pass_.run(batch, buffers_[static_cast<std::size_t>(worker)], scale_of(worker).loss_scale());
  if (!std::isfinite(result.loss))
    throw Error(ExitCode::non_finite,
                str("the loss is not finite at step ", share.step, " of worker ", worker), {},
                "lower optimizer.lr or optimizer.momentum");
  if (code_)
    code_->pass_through(pass_.gradients(), residuals_[static_cast<std::size_t>(worker)], batch);
  store_.slot(worker).copy_(pass_.gradients());
  loss_ += result.loss;
  ++shares_;
}

bool PsSimulation::admit(GradientScale& scale, at::Tensor const& gradient) {
  if (!scale.needs_norm()) return true;
  bool const admitted = scale.admit(gradient_norm({&gradient, 1}));
  if (auto const& problem = scale.problem()) throw Error(*problem);
  return admitted;
}

SimulatedCounts PsSimulation::counts() const {
  auto counts = counts_;
  counts.time = cluster_.now();
  counts.idle_share = 1 - cluster_.computed() / (workers_ * cluster_.now());
  counts.server_share = cluster_.busy() / cluster_.now();
  return counts;
}

NamedTensors PsSimulation::parameters() {
  return pass_.replica().named(store_.parameters(), all_tensors);
}

at::Tensor PsSimulation::predict(at::Tensor const& images) {
  pass_.replica().flat().copy_(store_.parameters());
  pass_.replica().refresh({0, store_.parameters().numel()});
  return pass_.predict(images, average(buffers_));
}

}  // namespace stratagem
