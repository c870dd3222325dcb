#pragma once

#include <map>
#include <string>

#include "comm/communicator.hpp"
#include "strategy/gradient_scale.hpp"

namespace stratagem {

// Asynchronous workers have a loss scale each. A checkpoint names every worker's, and the least of
// them under the names that other strategies know.

/// What a checkpoint keeps of all workers; `worker`: whose `own` is, -1 for a server. Collective.
std::map<std::string, double> join_loss_scales(GradientScale const& own, int worker, int workers,
                                               Communicator& communicator);

/// What there is for one worker: its own, or what all share.
std::map<std::string, double> loss_scale_of(int worker,
                                            std::map<std::string, double> const& counters);

}  // namespace stratagem
