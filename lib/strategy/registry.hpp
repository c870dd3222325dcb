#pragma once

#include "strategy/plan.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/strategy_config.hpp"

namespace stratagem {

// What is made of a configuration, whichever strategy it is of: each has its plan_of().

/// Who computes and who serves. Error(usage) when so many ranks cannot be dealt.
Roles roles_of(StrategyConfig const& config, int ranks);
/// Error(usage) when the strategy cannot run on so many ranks.
StrategyPlan plan_strategy(StrategyConfig const& config, Model const& model,
                           OptimizerConfig const& optimizer, PrecisionConfig const& precision,
                           int ranks);

/// A member by itself, of a plan made for it.
Member make_member(StrategyConfig const& config, StrategyParts const& parts);

}  // namespace stratagem
