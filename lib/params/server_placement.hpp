#pragma once

namespace stratagem {

/// Where among the ranks the servers are. Rank 0 is a worker either way.
enum class ServerPlacement {
  last,   ///< the highest ranks
  spread  ///< the last rank of each of equal groups: one per node, where nodes have equal ranks
};

}  // namespace stratagem
