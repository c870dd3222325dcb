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
    made.push_back(std::make_shared<NodeArena>(ranks));
    addresses.push_back(made.back()->address());
  }
  for (int rank = 0; rank < ranks; ++rank)
    made[static_cast<std::size_t>(rank)]->open(addresses, rank);
  return made;
}

/// The group of all of them, on each.
inline std::vector<std::unique_ptr<NodeGroup>> groups(
    std::vector<std::shared_ptr<NodeArena>> const& arenas) {
  std::vector<NodeGroup::Member> members;
  for (auto const& arena : arenas)
    members.push_back({arena->rank(), arena->reserve(NodeGroup::room)});
  std::vector<std::unique_ptr<NodeGroup>> made;
  for (auto const& arena : arenas) made.push_back(std::make_unique<NodeGroup>(arena, members));
  return made;
}

}  // namespace stratagem::test
