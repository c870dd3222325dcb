#include "strategy/timing/lanes.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

/// Of the node's cores a rank's transfers had these when it was measured.
double cores_of_rank(StepCosts const& costs) {
  return std::min(1.0, static_cast<double>(costs.cores) / costs.ranks_on_node);
}

}  // namespace

void Lanes::compute(double seconds) {
  now_ += seconds;
  computed_ += seconds;
  tell({Event::Kind::compute, seconds});
}

double Lanes::communicate(Transfer const& transfer) {
  link_ = std::max(link_, now_) + transfer.seconds;
  moved_ += transfer.core_s;
  tell({Event::Kind::communicate, transfer.seconds, link_});
  return link_;
}

void Lanes::await(double moment) {
  now_ = std::max(now_, moment);
  tell({Event::Kind::await, moment});
}

StepParts::StepParts(StrategyPlan const& plan, Model const& model, StepCosts const& costs,
                     Lanes::Heard heard)
    : plan(plan), costs(costs), layout(make_layout(model)), heard(std::move(heard)) {}

CodecSpeed StepCosts::codec(Compression const& compression) const {
  if (!compression.on()) return {};
  CodecTimes const* found = nullptr;
  for (auto const& one : codecs)  // of a code that never draws there is one rounding
    if (one.code == compression.code && (!found || one.rounding == compression.rounding))
      found = &one;
  if (found != nullptr) return found->speed;
  throw Error(ExitCode::usage,
              str("the calibration does not say how long gradients take to be written in ",
                  name_of(compression.code)),
              {}, "add it with `stratagem calibrate CONFIG -o FILE`, on that machine");
}

Steady steady(StepParts const& parts, std::function<void(Lanes&)> const& step) {
  Lanes lanes(parts.heard);
  for (int i = 0; i < steps_to_settle; ++i) step(lanes);
  auto const before = lanes;
  for (int i = 0; i < mean_over_steps; ++i) step(lanes);
  return {(lanes.now() - before.now()) / mean_over_steps,
          (lanes.computed() - before.computed()) / mean_over_steps,
          (lanes.moved() - before.moved()) / mean_over_steps};
}

StepTime with_cores(double path_s, double compute_s, double moving_s, int ranks, int awake,
                    StepCosts const& costs) {
  StepTime time{.compute_s = compute_s, .exposed_s = std::max(path_s - compute_s, 0.0)};
  if (costs.cores == 0) return time;
  auto const on_node = static_cast<double>(costs.ranks_on_node) / ranks;
  auto const needed = on_node * (awake * costs.threads * compute_s + moving_s);
  time.cores_s = std::max(needed / costs.cores - time.total(), 0.0);
  return time;
}

StepTime time_of_collectives(Steady const& found, StepParts const& parts) {
  auto const ranks = parts.plan.placement.workers();
  return with_cores(found.path_s, found.compute_s,
                    ranks * cores_of_rank(parts.costs) * found.moving_s, ranks, ranks, parts.costs);
}

}  // namespace stratagem
