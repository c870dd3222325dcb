#pragma once

namespace stratagem {

enum class CommBackend { automatic, mpi, nccl };

/// Whether ranks of one node sum and gather tensors in memory that all of them map, for backend mpi
/// on CPUs. automatic: where the system allows it.
enum class NodeMemoryMode { automatic, required, off };

/// How sums and gathers cross from node to node, for backend mpi on CPUs. flat: every rank
/// exchanges with every other. chain: see ChainedSum; automatic: that, where nodes have several
/// ranks each, equally many. The bits are the same.
enum class CommAlgorithm { automatic, flat, chain };

/// What backend mpi makes of ranks that are on one node.
struct NodeUse {
  NodeMemoryMode memory = NodeMemoryMode::automatic;
  CommAlgorithm algorithm = CommAlgorithm::automatic;
  int ranks_per_node = 0;  ///< for tests: so many consecutive ranks count as a node; 0: as it is
};

/// Section `comm` of the configuration.
struct CommConfig {
  CommBackend backend = CommBackend::automatic;  ///< nccl if every rank has its own GPU, else mpi
  NodeUse node;
  int timeout_s = 300;  ///< limit of one wait for other ranks
  /// For backend mpi: every operation is delayed by a random time up to this. For tests of overlap.
  int delay_us = 0;
};

}  // namespace stratagem
