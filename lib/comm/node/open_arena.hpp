#pragma once

#include <memory>
#include <string>

#include "comm/comm_config.hpp"
#include "comm/node/arena.hpp"
#include "gpu/device.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// The arena of all ranks of a group, or none; the same on all.
struct OpenedArena {
  std::shared_ptr<NodeArena> arena;
  std::string failure;  ///< why there is none although the ranks are on one node; else empty
};

/// None for ranks on several nodes, or with a GPU. `room`: see NodeArena. Collective over `comm`.
/// AgreedError(environment) where it is required and cannot be had.
OpenedArena open_arena(mpi::Comm const& comm, NodeMemoryMode mode, gpu::Device const& device,
                       std::size_t room);

}  // namespace stratagem
