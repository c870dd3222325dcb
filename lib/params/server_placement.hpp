#pragma once

namespace stratagem {

/// Which ranks are servers.
enum class ServerPlacement {
  last,    ///< the highest ranks
  first,   ///< the lowest ranks
  spread,  ///< the last rank of each of equal groups: one per node if nodes have equally many ranks
  listed   ///< as listed
};

}  // namespace stratagem
