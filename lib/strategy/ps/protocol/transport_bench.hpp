#pragma once

#include <cstdint>

#include "comm/world.hpp"
#include "strategy/ps/ps_config.hpp"

namespace stratagem {

/// Seconds in which all workers push a gradient, the server makes an update of them, and all have
/// pulled the parameters.
struct TransportTimes {
  double two_sided = 0;
  double rma = 0;
  /// What one process needs at least for the same: per worker a copy of the gradient and one of the
  /// parameters, and the update.
  double bound = 0;
};

/// Of one server, the last rank, and the others as workers, for a vector of `bytes` in chunks of
/// `chunk_mb`: SGD with momentum in fp32. The three one after the other, after as many rounds
/// to warm up as are measured; of each the mean over `rounds`. Collective; the same on all ranks.
TransportTimes measure_transports(World& world, std::int64_t bytes, double chunk_mb, int rounds);

}  // namespace stratagem
