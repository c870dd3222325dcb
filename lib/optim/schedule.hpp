#pragma once

#include <cstdint>

#include "optim/optim_config.hpp"

namespace stratagem {

/// The learning rate of every step, a pure function of the step.
///   warm-up   lr (s + 1) / warmup_steps while s < warmup_steps
///   constant  lr
///   cosine    end + (lr - end) (1 + cos(pi t)) / 2
///   linear    end + (lr - end) (1 - t)
///   wsd       lr, and over the last steps as linear ("warm-up, stable, decay")
///   step      lr gamma^floor(epoch / step_size)
/// t is the share that is done of decay_steps: those after the warm-up, all of them where it is 0;
/// of wsd the last of the run, a tenth of it where it is 0. end is optimizer.final_lr. lr is
/// optimizer.lr, times the number of workers (linear) or its square root where asked for; so is
/// end.
class Schedule {
 public:
  Schedule(OptimizerConfig const& config, int workers, std::int64_t steps_per_epoch,
           std::int64_t total_steps);

  double lr(std::int64_t step) const;

 private:
  /// In [0, 1].
  double share_of_decay(std::int64_t step) const;

  OptimizerConfig config_;
  double base_, end_;
  std::int64_t steps_per_epoch_, total_steps_;
};

}  // namespace stratagem
