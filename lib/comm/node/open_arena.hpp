#pragma once

#include <memory>
#include <string>

#include "comm/comm_config.hpp"
#include "comm/node/arena.hpp"
#include "gpu/device.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// The memory that the ranks of each node share: a rank of the group is node * arena->size() +
/// arena->rank().
struct OpenedArena {
  std::shared_ptr<NodeArena> arena;  ///< of this node; none on all nodes: not used
  int nodes = 1;
  std::string failure;  ///< why there is none although it would be of use; else empty
};

/// None for ranks with a GPU, and on several nodes that use algorithm flat. `room`: see NodeArena.
/// Collective over `comm`. AgreedError(environment) where memory or the chain is required and
/// cannot be had.
OpenedArena open_arena(mpi::Comm const& comm, NodeUse const& use, gpu::Device const& device,
                       std::size_t room);

}  // namespace stratagem
