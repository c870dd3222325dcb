#pragma once

#include <cstdint>

namespace stratagem {

/// Sums over the steps of an epoch, so far.
struct EpochSums {
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t labels = 0;   ///< one per image, or one per token
  std::int64_t applied = 0;  ///< of the labels: whose gradients were applied
  std::int64_t steps = 0;    ///< that were made; of all ranks, where each knows its own alone
  double time_s = 0;         ///< without evaluation and saving
  std::int64_t comm_bytes = 0;
  double energy_J = 0;  ///< NaN where the device does not tell

  EpochSums& operator+=(EpochSums const& other) {
    loss += other.loss;
    correct += other.correct;
    labels += other.labels;
    applied += other.applied;
    steps += other.steps;
    time_s += other.time_s;
    comm_bytes += other.comm_bytes;
    energy_J += other.energy_J;
    return *this;
  }
};

/// Where a training stands between two steps. What follows is a function of it, of the strategy's
/// state and of the configuration.
struct TrainingProgress {
  std::int64_t step = 0;
  double train_time_s = 0;  ///< of the epochs that have ended
  double wall_time_s = 0;   ///< with evaluation and saving, so far
  EpochSums epoch;          ///< of the one that has not; no steps where none has begun
};

}  // namespace stratagem
