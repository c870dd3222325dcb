#pragma once

namespace stratagem {

enum class CommBackend { automatic, mpi, nccl };

/// Section `comm` of the configuration.
struct CommConfig {
  CommBackend backend = CommBackend::automatic;  ///< nccl if every rank has its own GPU, else mpi
  int timeout_s = 300;                           ///< limit of one wait for other ranks
  /// For backend mpi: every operation is delayed by a random time up to this. For tests of overlap.
  int delay_us = 0;
};

}  // namespace stratagem
