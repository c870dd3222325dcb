#pragma once

#include "base/contract.hpp"
#include "strategy/plan.hpp"
#include "strategy/planned_strategy.hpp"

namespace stratagem {

/// What the strategy of a plan has decided.
template <class Plan>
Plan const& decided(StrategyPlan const& plan) {
  auto const* planned = dynamic_cast<PlannedAs<Plan> const*>(plan.strategy.get());
  expects(planned != nullptr, "a plan of this strategy");
  return planned->plan();
}

}  // namespace stratagem
