#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "mpi/comm.hpp"

namespace stratagem::mpi {

/// Zeroed memory with a part for each rank of a node, which all of them read and write as their
/// own, without calls of MPI.
class NodeMemory {
 public:
  /// `node`: ranks that share memory (Comm::split_node), `bytes` for each. Collective.
  /// Error(environment) when there is too little of it.
  NodeMemory(Comm const& node, std::size_t bytes);
  /// Collective, but while an exception unwinds it is left to the end of the process.
  ~NodeMemory();
  NodeMemory(NodeMemory const&) = delete;
  NodeMemory& operator=(NodeMemory const&) = delete;

  /// Of a rank of the node, on a cache line's bound.
  std::span<std::byte> part(int rank) const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::size_t bytes_;
};

}  // namespace stratagem::mpi
