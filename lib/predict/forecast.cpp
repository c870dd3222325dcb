#include "predict/forecast.hpp"

#include "base/error.hpp"

namespace stratagem {

void predict_activations(Forecast& forecast, Model const& model, ActivationPredictor& predictor) {
  auto const& plan = forecast.plan;
  auto const& config = plan.config;
  forecast.activations =
      predictor.predict(model, config.model, plan.input, config.precision.compute,
                        plan.samples_per_pass, config.run.threads, config.run.device);
}

void predict_time(Forecast& forecast, Model const& model, Calibration const& calibration) {
  try {
    forecast.time = predict_time(forecast.plan, model, calibration);
  } catch (Error const& problem) {
    forecast.time_problem = problem.what();
  }
}

}  // namespace stratagem
