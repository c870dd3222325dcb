#include "strategy/gossip/gossip.hpp"

#include <limits>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"

namespace stratagem {

using trace::Phase;

namespace {

std::vector<at::Tensor> make_inbox(GossipPlan const& plan, StrategyParts const& parts,
                                   std::int64_t numel) {
  std::vector<at::Tensor> inbox;
  for (int i = 0; i < plan.inbox; ++i)
    inbox.push_back(parts.allocate(gpu::MemoryCategory::gradients, numel));
  return inbox;
}

}  // namespace

Gossip::Gossip(GossipPlan const& plan, StrategyParts const& parts)
    : plan_(plan),
      parts_(parts),
      workers_({.all = plan.workers(),
                .of_rank = plan.workers_of_rank(),
                .micro_batches = plan.config.micro_batches,
                .apart = plan.workers() > 1,
                .tail = Mixer::tail},
               parts),
      mixer_(plan, parts.world.all(),
             make_inbox(plan, parts, workers_.with_tails().front().numel())) {
  for (auto const& learner : workers_.learners()) x_.push_back(learner.replica.flat());
}

void Gossip::begin_round(Round const& /*round*/) {
  workers_.leave_mean();
  mixer_.tidings() = Tidings(plan_.neighbours.reach());
}

StepResult Gossip::step(Batch const& batch, StepOptions const& options) {
  auto& tidings = mixer_.tidings();
  auto own = tidings.tells_refusal() ? StepResult{.loss = std::numeric_limits<double>::quiet_NaN(),
                                                  .labels = batch.labels.numel()}
                                     : learn(batch, options);
  tidings.tell(options.requests);
  if (workers_.failure()) tidings.refuse();
  if (plan_.mixes_after(batch.step)) {
    parts_.recorder.enter(Phase::comm_exposed);
    mixer_.mix(plan_.mixing_of(batch.step), x_, workers_.with_tails());
  }
  divide_by_weights();
  if (tidings.refused()) {
    agree(parts_.world.all(), workers_.failure());
    ensures(false, "a rank that refuses says why");
  }
  own.requests = tidings.requests();
  return own;
}

StepResult Gossip::learn(Batch const& batch, StepOptions const& options) {
  return workers_.run_passes(batch, options, {}, [&](std::size_t worker) {
    if (plan_.config.push_sum) x_[worker].mul_(mixer_.weights()[worker]);
    workers_.step_alone(worker, batch, options.lr);
  });
}

void Gossip::divide_by_weights() {
  parts_.recorder.enter(Phase::optimizer);
  for (std::size_t worker = 0; worker < x_.size(); ++worker) {
    if (plan_.config.push_sum) x_[worker].div_(mixer_.weights()[worker]);
    workers_.learner_of(worker).replica.refresh(workers_.all());
  }
}

std::string Gossip::report() {
  if (plan_.workers() == 1) return {};
  auto const text = str("spread ", format_number(100 * workers_.spread(), 3), " %");
  parts_.recorder.event(trace::Severity::info, "spread", text);
  return parts_.world.all().rank() == 0 ? text : "";
}

State Gossip::state() {
  auto state = workers_.state(workers_.in_common());
  if (!plan_.config.push_sum) return state;
  for (std::size_t worker = 0; worker < x_.size(); ++worker)
    state.counters.emplace(
        str(GossipConfig::push_sum_weight, '/', plan_.workers(), '/', workers_.number_of(worker)),
        &mixer_.weights()[worker]);
  return state;
}

}  // namespace stratagem
