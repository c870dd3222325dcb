#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "mpi/comm.hpp"

namespace stratagem::mpi {

/// Zeroed memory with a part for each rank of a node. All ranks of the node read and write all
/// parts, without MPI calls.
class NodeMemory {
 public:
  /// `node`: ranks that share memory (Comm::split_node); `bytes`: for each rank. Collective.
  /// Error(environment) if there is not enough shared memory.
  NodeMemory(Comm const& node, std::size_t bytes);
  /// Collective. While an exception unwinds, the memory is not freed before the process ends.
  ~NodeMemory();
  NodeMemory(NodeMemory const&) = delete;
  NodeMemory& operator=(NodeMemory const&) = delete;

  /// The part of a rank of the node, aligned to a cache line.
  std::span<std::byte> part(int rank) const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::size_t bytes_;
};

}  // namespace stratagem::mpi
