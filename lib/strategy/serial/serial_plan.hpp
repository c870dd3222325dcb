#pragma once

#include "strategy/plan.hpp"
#include "strategy/serial/serial_config.hpp"

namespace stratagem {

/// Error(usage) on several ranks.
StrategyPlan plan_of(SerialConfig const& config, PlanInput const& input);

}  // namespace stratagem
