#pragma once

#include <map>
#include <string>

#include "comm/communicator.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

// What the next step depends on beside tensors: the state of the loss scale. Asynchronous workers
// have one each. A checkpoint names every worker's, "loss_scale/3", and the least of them under the
// name that other strategies know.

using Counters = std::map<std::string, double>;

/// Of all ranks, by name. Collective.
Counters gather_counters(State const& state, Communicator& communicator);
/// Replaces those of this rank that `counters` has.
void load_counters(State const& state, Counters const& counters);

/// What there is for one worker: its own, or what all share.
Counters counters_of(int worker, Counters const& counters);

}  // namespace stratagem
