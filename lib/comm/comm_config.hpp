#pragma once

namespace stratagem {

enum class CommBackend { automatic, mpi, nccl };

/// Whether ranks of one node sum and gather tensors in memory that all of them map, for backend mpi
/// on CPUs. automatic: where the system allows it.
enum class NodeMemoryMode { automatic, required, off };

/// Section `comm` of the configuration.
struct CommConfig {
  CommBackend backend = CommBackend::automatic;  ///< nccl if every rank has its own GPU, else mpi
  NodeMemoryMode node_memory = NodeMemoryMode::automatic;
  int timeout_s = 300;  ///< limit of one wait for other ranks
  /// For backend mpi: every operation is delayed by a random time up to this. For tests of overlap.
  int delay_us = 0;
};

}  // namespace stratagem
