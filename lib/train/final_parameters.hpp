#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "model/model.hpp"
#include "strategy/plan.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

/// Of the parameters, of which no rank needs to hold more than its share; the same on every rank.
/// Collective.
std::string digest_of_parameters(Communicator& communicator, State const& state, Model const& model,
                                 StrategyPlan const& plan);

/// The first rank that holds whole tensors gathers all of them, and the mean running statistics,
/// and writes `file`. What kept it from that, on all ranks. Collective.
std::optional<Error> save_weights(std::filesystem::path const& file, Communicator& communicator,
                                  State const& state, Model const& model, StrategyPlan const& plan);

}  // namespace stratagem
