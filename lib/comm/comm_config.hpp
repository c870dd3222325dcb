#pragma once

namespace stratagem {

enum class CommBackend { automatic, mpi, nccl };

/// Section `comm` of the configuration.
struct CommConfig {
  CommBackend backend = CommBackend::automatic;  ///< nccl on GPUs with one rank each, else mpi
  int timeout_s = 300;                           ///< of one wait for other ranks
  /// Of backend mpi: every operation begins late, by a random time up to this. To test overlap.
  int delay_us = 0;
};

}  // namespace stratagem
