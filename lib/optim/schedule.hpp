#pragma once

#include <cstdint>

#include "optim/optim_config.hpp"

namespace stratagem {

/// The learning rate of every step, a pure function of the step.
///   warm-up   lr (s + 1) / warmup_steps while s < warmup_steps
///   constant  lr
///   cosine    lr (1 + cos(pi t)) / 2, t = share of the steps after the warm-up that are done
///   step      lr gamma^floor(epoch / step_size)
/// lr is optimizer.lr, times the number of workers (linear) or its square root where asked for.
class Schedule {
 public:
  Schedule(OptimizerConfig const& config, int workers, std::int64_t steps_per_epoch,
           std::int64_t total_steps);

  double lr(std::int64_t step) const;

 private:
  OptimizerConfig config_;
  double base_;
  std::int64_t steps_per_epoch_, total_steps_;
};

}  // namespace stratagem
