#pragma once

namespace stratagem {

/// Where among the ranks the servers are.
enum class ServerPlacement {
  last,    ///< the highest ranks
  first,   ///< the lowest ranks
  spread,  ///< the last rank of each of equal groups: one per node, where nodes have equal ranks
  listed   ///< as a list says
};

}  // namespace stratagem
