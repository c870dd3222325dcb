#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "comm/communicator.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

// Sizes and bandwidths have the same meaning as in NVIDIA's nccl-tests. Times do not: here the host
// waits for each operation, and the slowest rank counts; nccl-tests queue all and take the mean.

enum class BenchOperation { all_reduce, reduce_scatter, all_gather, broadcast, send_receive };

inline constexpr std::array<std::string_view, 5> bench_operation_names{
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "send_receive"};

struct BenchResult {
  std::int64_t bytes = 0;  ///< of the larger of input and output; a whole number of parts
  std::int64_t numel = 0;  ///< float32 elements in them
  int iterations = 0;
  double time_s = 0;       ///< per operation: mean over iterations, largest over ranks
  double algbw = 0;        ///< bytes / time [B/s]
  double busbw = 0;        ///< algbw times what the operation moves per rank and byte [B/s]
  std::int64_t wrong = 0;  ///< elements with a wrong value, over all ranks
};

/// How many bytes an operation among `ranks` must move over each rank's link, per byte.
double bus_factor(BenchOperation operation, int ranks);

/// One operation on about `bytes` of float32: checked once, warmed up, then repeated for about
/// `min_time_s`. send_receive sends around the ring of ranks. Collective; the same result on all
/// ranks.
BenchResult bench(Communicator& comm, BenchOperation operation, std::int64_t bytes,
                  double min_time_s = 0.2);

/// The MPI library's own MPI_Allreduce, for comparison. Collective. Nothing of `comm` may be in
/// flight meanwhile, so that only one thread calls MPI.
BenchResult bench_library_all_reduce(Communicator& comm, mpi::Comm const& world, std::int64_t bytes,
                                     double min_time_s = 0.2);

/// Time of MPI_Allreduce divided by that of comm.all_reduce: median of `pairs` measurements of one
/// after the other. Above 1, the communicator is faster. Collective.
double speed_up_over_library(Communicator& comm, mpi::Comm const& world, std::int64_t bytes,
                             int pairs);

}  // namespace stratagem
