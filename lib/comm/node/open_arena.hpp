#pragma once

#include <memory>
#include <string>

#include "comm/comm_config.hpp"
#include "comm/node/node_group.hpp"
#include "gpu/device.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// How the ranks of a group lie on nodes. Rank r of the group is on node r / part->size().
struct OnNodes {
  /// Those of this node, in the memory that they share; none on all nodes: they send messages.
  std::unique_ptr<NodeGroup> part;
  int nodes = 1;
};

/// The memory that the ranks of each node share.
struct OpenedArena {
  std::shared_ptr<NodeArena> arena;  ///< of this node; none on all nodes: not used
  OnNodes all;                       ///< the group of all ranks
  int node = 0;                      ///< this one, by its lowest rank
  std::string failure;               ///< why there is none although it would be of use; else empty
};

/// None for ranks with a GPU, and on several nodes that use algorithm flat. Collective over `comm`,
/// which has all ranks. AgreedError(environment) where memory or the chain is required and cannot
/// be had.
OpenedArena open_arena(mpi::Comm const& comm, NodeUse const& use, gpu::Device const& device);

/// A further group of ranks that have opened this memory. Collective over `group`.
OnNodes open_group(mpi::Comm const& group, OpenedArena const& opened);

}  // namespace stratagem
