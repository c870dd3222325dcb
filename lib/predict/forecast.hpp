#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/run_plan.hpp"
#include "predict/activations.hpp"
#include "predict/code_comparison.hpp"
#include "predict/server_load.hpp"
#include "predict/time/predicted_time.hpp"

namespace stratagem {

/// A plan, and what is predicted of its run. A plan follows from the configuration; a prediction
/// needs passes that are run, or a machine that was measured.
struct Forecast {
  RunPlan plan;
  std::optional<ActivationUse> activations;
  std::optional<ServerLoad> server_load;  ///< of a plan with servers
  std::optional<PredictedTime> time;      ///< where there is a calibration of the machine
  std::string time_problem;               ///< why there is none all the same
  std::vector<ComparedCode> codes;        ///< where it has a time and could code gradients

  /// Most bytes that a rank that computes will hold, as far as they are known: without its data.
  std::int64_t peak_bytes() const {
    return plan.strategy.memory.total() + (activations ? activations->peak : 0);
  }
  bool is_mostly_activations() const { return activations && 2 * activations->peak > peak_bytes(); }
};

/// Adds what a pass of a worker holds. `model` is that of the plan.
void predict_activations(Forecast& forecast, Model const& model, ActivationPredictor& predictor);

/// Adds the time, or why it cannot be told.
void predict_time(Forecast& forecast, Model const& model, Calibration const& calibration);

}  // namespace stratagem
