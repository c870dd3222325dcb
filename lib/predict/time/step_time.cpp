#include "predict/time/step_time.hpp"

#include "strategy/planned_strategy.hpp"
#include "strategy/timing/lanes.hpp"

namespace stratagem {

double ratio_error(double step_s) {
  return step_s < short_step_s ? 1.32 : 0.20;
}

StepTime predict_step(RunPlan const& plan, Model const& model, StepCosts const& costs) {
  return plan.strategy.strategy->time(StepParts(plan.strategy, model, costs));
}

}  // namespace stratagem
