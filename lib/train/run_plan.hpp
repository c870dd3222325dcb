#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/dataset.hpp"
#include "model/model.hpp"
#include "strategy/activations.hpp"
#include "strategy/ps/server_load.hpp"
#include "strategy/registry.hpp"
#include "train/predicted_time.hpp"
#include "train/run_config.hpp"

namespace stratagem {

/// How many images there are, without reading any.
struct DatasetSize {
  std::int64_t train = 0;
  std::int64_t test = 0;
};

/// Everything about a run that follows from its configuration and the number of ranks: computed
/// before anything is allocated, printed by `stratagem plan`, equal on all ranks.
struct RunPlan {
  RunConfig config;
  int ranks = 1;
  InputShape input;
  DatasetSize images;
  std::int64_t global_batch = 0;
  std::int64_t batch_per_rank = 0;    ///< samples a worker is handed per step
  std::int64_t samples_per_pass = 0;  ///< of one forward pass of one worker
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
  StrategyPlan strategy;
  std::optional<ActivationUse> activations;  ///< where they were asked for: they take seconds
  std::optional<ServerLoad> server_load;     ///< likewise, of a parameter server
  std::optional<PredictedTime> time;         ///< where there is a calibration of the machine
  std::string time_problem;                  ///< why there is none all the same

  /// Most bytes that a rank that computes will hold, as far as they are known: without its data.
  std::int64_t peak_bytes() const {
    return strategy.memory.total() + (activations ? activations->peak : 0);
  }
};

/// Error(usage) saying what does not fit together: the batch and the ranks, more ranks than
/// samples, batches of one sample that BatchNorm refuses, a strategy and the number of ranks.
RunPlan make_run_plan(RunConfig const& config, Model const& model, DatasetSize const& images,
                      int ranks);

/// Adds what a pass of a worker holds. `model` is that of the plan.
void predict_activations(RunPlan& plan, Model const& model, ActivationPredictor& predictor);

/// Parameters and momentum, as a checkpoint has them [B].
std::int64_t saved_bytes(Model const& model, RunConfig const& config);

/// The shape of what the model of `config` sees: its own number of channels, or the dataset's.
InputShape input_shape(RunConfig const& config);

/// What the catalogue says of the dataset, cut to data.subset.
DatasetSize published_size(DataConfig const& config);

}  // namespace stratagem
