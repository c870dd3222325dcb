#pragma once

#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "strategy/strategy_parts.hpp"
#include "strategy/timing/step_time.hpp"

namespace stratagem {

class StepParts;

/// What a strategy has decided before it runs. The plan that ranks compare and people read is the
/// one that makes the members: nothing is decided twice. Immutable, the same on all ranks.
class PlannedStrategy {
 public:
  virtual ~PlannedStrategy() = default;

  /// What the calling rank is. Collective.
  virtual Member make(StrategyParts const& parts) const = 0;
  /// Of one step: it computes and communicates in the order in which the member's step() does.
  virtual StepTime time(StepParts const& parts) const = 0;
  /// For people, each with a line's end; and the same for programs, as entries of `document`.
  virtual std::string tables(Model const& /*model*/) const { return {}; }
  virtual void add_to(nlohmann::json& /*document*/) const {}
};

/// One whose decisions are a value of its own type.
template <class Plan>
class PlannedAs : public PlannedStrategy {
 public:
  explicit PlannedAs(Plan plan) : plan_(std::move(plan)) {}

  Plan const& plan() const { return plan_; }

 protected:
  Plan plan_;
};

}  // namespace stratagem
