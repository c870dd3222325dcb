#pragma once

#include "model/model.hpp"
#include "plan/run_plan.hpp"
#include "predict/calibration.hpp"
#include "strategy/timing/step_time.hpp"

namespace stratagem {

/// From what was measured of passes like the plan's. Error(usage) naming what was not measured, and
/// what was.
StepCosts step_costs(RunPlan const& plan, Model const& model, Calibration const& calibration);

}  // namespace stratagem
