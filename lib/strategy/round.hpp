#pragma once

#include <functional>

#include "strategy/strategy.hpp"

namespace stratagem {

/// What whoever trains does around the steps of a round.
struct RoundHooks {
  std::function<void()> before = [] {};  ///< the next batch is asked for
  std::function<StepOptions(Batch const&)> options;
  /// False: the round ends here, on all ranks that have the same result.
  std::function<bool(Batch const&, StepResult const&)> after = [](auto const&, auto const&) {
    return true;
  };
};

/// One round of this rank: all trainings follow this protocol. Collective.
void run_round(Member const& member, Round const& round, RoundHooks const& hooks);

}  // namespace stratagem
