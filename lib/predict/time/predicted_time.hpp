#pragma once

#include <optional>
#include <string>

#include "model/model.hpp"
#include "plan/run_plan.hpp"
#include "predict/calibration.hpp"
#include "strategy/timing/step_time.hpp"

namespace stratagem {

/// How fast a rank reads the user's own images.
struct Reading {
  double image_s = 0;  ///< one thread, for one image
  int threads = 1;     ///< of one rank

  double images_per_s() const { return threads / image_s; }
};

/// How long a run will take on a machine that was measured.
struct PredictedTime {
  StepTime step;                   ///< one global batch
  int sync_every = 1;              ///< steps from one exchange among the workers to the next
  double epoch_s = 0;              ///< training alone, after a warm start
  double run_s = 0;                ///< with evaluations; at most run.max_time_s of training
  double save_s = 0;               ///< a checkpoint; 0 where that is not known
  std::optional<Reading> reading;  ///< of own images, where the machine was measured
  std::string published;  ///< whose figures it is from; empty where the machine was measured
  /// Nine of ten recorded ratios of two such times were off by no more (ratio_error()).
  std::optional<double> ratio_error;

  /// What to ask a scheduler for: a quarter more, with five minutes to start and to end, in whole
  /// minutes: "01:05:00".
  std::string request() const;

  /// How long before its end a job has to be told to save, in whole tens of seconds: the present
  /// step and those up to the next exchange go by before it does; twice that and the saving, and a
  /// minute for launcher and scheduler.
  int lead_s() const;
};

/// `model` is that of the plan. Error where the calibration does not tell.
PredictedTime predict_time(RunPlan const& plan, Model const& model, Calibration const& calibration);

}  // namespace stratagem
