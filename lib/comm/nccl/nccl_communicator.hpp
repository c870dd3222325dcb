#pragma once

#include <chrono>
#include <memory>

#include "comm/communicator.hpp"
#include "comm/work/periodic_task.hpp"
#include "mpi/comm.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// NCCL collectives between GPUs, on a separate high-priority stream, with one rank per GPU.
/// Point-to-point uses MPI, because NCCL has no tags. The ranks meet over `world`; from then on,
/// the thread rules of MpiCommunicator apply. `recorder` may be null; spans last from submission
/// until completion is noticed.
///
/// Error(environment) on all ranks if NCCL cannot start, or if this build does not contain it. An
/// operation that fails ends in Error(peer_lost); one that takes longer than `timeout` ends in
/// Error(stall). Both abort the communicator. Collective.
std::unique_ptr<Communicator> make_nccl_communicator(
    mpi::Comm const& world, gpu::Device const& device, trace::Recorder* recorder,
    std::chrono::nanoseconds timeout, std::unique_ptr<PeriodicTask> periodic_task = nullptr);

}  // namespace stratagem
