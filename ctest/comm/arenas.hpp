#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/node/arena.hpp"
#include "comm/node/node_collective.hpp"

namespace stratagem::test {

/// The arenas of ranks that are threads of this process.
inline std::vector<std::shared_ptr<NodeArena>> arenas(int ranks) {
  std::vector<std::shared_ptr<NodeArena>> made;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < ranks; ++rank) {
    made.push_back(std::make_shared<NodeArena>(NodeCollective::room, ranks));
    addresses.push_back(made.back()->address());
  }
  for (int rank = 0; rank < ranks; ++rank)
    made[static_cast<std::size_t>(rank)]->open(addresses, rank);
  return made;
}

}  // namespace stratagem::test
