#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "strategy/plan.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/strategy_config.hpp"

namespace stratagem {

// What is made of a configuration, whichever strategy it is of: each has its plan_of().

/// Who computes and who serves. Error(usage) when so many ranks cannot be dealt.
Placement place_ranks(StrategyConfig const& config, int ranks);
/// Error(usage) when the strategy cannot run on so many ranks.
StrategyPlan plan_strategy(StrategyConfig const& config, Model const& model,
                           OptimizerConfig const& optimizer, PrecisionConfig const& precision,
                           int ranks);

/// Seconds in which all workers push a gradient of `bytes` to one server, the last rank, which
/// makes an update, and have pulled the parameters: "two_sided", "rma", and the copies that one
/// process would need for the same. The mean over `rounds`. Collective; the same on all ranks.
std::vector<std::pair<std::string_view, double>> exchange_times(World& world, std::int64_t bytes,
                                                                int rounds);

/// A member by itself, of a plan made for it.
Member make_member(StrategyConfig const& config, StrategyParts const& parts);

}  // namespace stratagem
