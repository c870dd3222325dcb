#include "optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stratagem {
namespace {

double scaling(LrScaling kind, int workers) {
  switch (kind) {
    case LrScaling::none:
      return 1;
    case LrScaling::linear:
      return workers;
    case LrScaling::sqrt:
      return std::sqrt(static_cast<double>(workers));
  }
  return 1;
}

}  // namespace

Schedule::Schedule(OptimizerConfig const& config, int workers, std::int64_t steps_per_epoch,
                   std::int64_t total_steps)
    : config_(config),
      base_(config.lr * scaling(config.lr_scaling, workers)),
      steps_per_epoch_(std::max<std::int64_t>(steps_per_epoch, 1)),
      total_steps_(total_steps) {}

double Schedule::lr(std::int64_t step) const {
  if (step < config_.warmup_steps)
    return base_ * static_cast<double>(step + 1) / static_cast<double>(config_.warmup_steps);
  switch (config_.schedule) {
    case ScheduleKind::constant:
      return base_;
    case ScheduleKind::cosine: {
      auto const span = std::max<std::int64_t>(total_steps_ - config_.warmup_steps, 1);
      auto const done = std::min(
          1.0, static_cast<double>(step - config_.warmup_steps) / static_cast<double>(span));
      return base_ * 0.5 * (1 + std::cos(std::numbers::pi * done));
    }
    case ScheduleKind::step:
      return base_ * std::pow(config_.gamma,
                              static_cast<double>(step / steps_per_epoch_ / config_.step_size));
  }
  return base_;
}

}  // namespace stratagem
