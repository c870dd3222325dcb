#pragma once

#include <vector>

#include "strategy/placement.hpp"

namespace stratagem {

/// Which ranks are servers.
enum class ServerPlacement {
  last,    ///< the highest ranks
  first,   ///< the lowest ranks
  spread,  ///< the last rank of each of equal groups: one per node if nodes have equally many ranks
  listed   ///< as listed
};

/// Error(usage) unless there are a server and a worker, or if `listed` (for placement listed) does
/// not contain `servers` ranks.
Placement place_servers(int ranks, int servers, ServerPlacement placement,
                        std::vector<int> const& listed = {});

}  // namespace stratagem
