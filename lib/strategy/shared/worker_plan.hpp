#pragma once

#include <string>
#include <string_view>

#include "strategy/plan.hpp"

namespace stratagem {

// Plans of strategies whose workers step on their own, and of which a rank may play several.

/// Error(usage) of something beside such a strategy.
[[noreturn]] void refuse_with(std::string_view strategy, std::string const& what,
                              std::string const& why, std::string const& cure);

/// Of all ranks; `configured` is 0 for one on each. Error(usage) where they cannot be dealt evenly.
int dealt_workers(std::string_view strategy, int configured, int ranks);

/// Error(usage) naming what goes by the gradients of all workers: clipping, loss scaling, sums in
/// place of means.
void refuse_what_needs_all_gradients(std::string_view strategy, PlanInput const& input);

/// Of a rank that plays so many workers, of which `replicas` have parameters and optimizer state of
/// their own.
gpu::MemoryUse memory_of_workers(StrategyPlan const& of_replicas, int workers, int replicas);

}  // namespace stratagem
