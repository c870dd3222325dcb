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
      end_(config.final_lr * scaling(config.lr_scaling, workers)),
      steps_per_epoch_(std::max<std::int64_t>(steps_per_epoch, 1)),
      total_steps_(total_steps) {}

double Schedule::share_of_decay(std::int64_t step) const {
  bool const at_end = config_.schedule == ScheduleKind::wsd;
  auto const usual = at_end ? total_steps_ / 10 : total_steps_ - config_.warmup_steps;
  auto const steps =
      std::max<std::int64_t>(config_.decay_steps > 0 ? config_.decay_steps : usual, 1);
  auto const first = at_end ? total_steps_ - steps : config_.warmup_steps;
  return std::clamp(static_cast<double>(step - first) / static_cast<double>(steps), 0.0, 1.0);
}

double Schedule::lr(std::int64_t step) const {
  if (step < config_.warmup_steps)
    return base_ * static_cast<double>(step + 1) / static_cast<double>(config_.warmup_steps);
  switch (config_.schedule) {
    case ScheduleKind::constant:
      return base_;
    case ScheduleKind::cosine:
      return end_ + (base_ - end_) * 0.5 * (1 + std::cos(std::numbers::pi * share_of_decay(step)));
    case ScheduleKind::linear:
    case ScheduleKind::wsd:
      return end_ + (base_ - end_) * (1 - share_of_decay(step));
    case ScheduleKind::step:
      return base_ * std::pow(config_.gamma,
                              static_cast<double>(step / steps_per_epoch_ / config_.step_size));
  }
  return base_;
}

}  // namespace stratagem
