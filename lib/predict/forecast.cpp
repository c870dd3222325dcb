#include "predict/forecast.hpp"

namespace stratagem {

void predict_activations(Forecast& forecast, Model const& model, ActivationPredictor& predictor) {
  auto const& plan = forecast.plan;
  auto const& config = plan.config;
  forecast.activations =
      predictor.predict(model, config.model, plan.input, config.precision.compute,
                        plan.samples_per_pass, config.run.threads, config.run.device);
}

}  // namespace stratagem
