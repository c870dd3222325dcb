#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/clients.hpp"
#include "strategy/offline.hpp"
#include "strategy/strategy_parts.hpp"
#include "strategy/timing/step_time.hpp"

namespace stratagem::trace {
class RankTrace;
}

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

  // Where samples belong to clients, once it is known whose they are.
  /// Error(usage) where this strategy cannot train with them.
  virtual void check(ClientSplit const& /*split*/) const {}
  /// As above.
  virtual std::string client_tables(ClientSplit const& /*split*/) const { return {}; }
  virtual void add_clients_to(nlohmann::json& /*document*/, ClientSplit const& /*split*/) const {}

  /// Nothing where the result follows from the configuration alone.
  virtual std::unique_ptr<Simulation> simulate(ClusterModel const& /*cluster*/,
                                               StrategyParts const& /*parts*/,
                                               SimulationInputs /*inputs*/) const {
    return nullptr;
  }
  /// Likewise; of what the servers recorded.
  virtual std::unique_ptr<Replay> replay(StrategyParts const& /*parts*/,
                                         std::vector<trace::RankTrace> const& /*servers*/) const {
    return nullptr;
  }
};

}  // namespace stratagem
