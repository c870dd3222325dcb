#pragma once

#include <chrono>
#include <memory>

#include "comm/communicator.hpp"
#include "comm/work/pulse.hpp"
#include "mpi/comm.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// Collectives by NCCL between GPUs, on a high-priority stream of their own, one rank per GPU.
/// Point-to-point goes over MPI: NCCL has no tags. The ranks meet over `world`; from then on its
/// thread rules are those of MpiCommunicator. `recorder` may be null; spans last from submission
/// until completion was noticed.
///
/// Error(environment) on all ranks when NCCL cannot start, or this build is without it. An
/// operation that fails ends in Error(peer_lost), one that takes longer than `timeout` in
/// Error(stall); both abort the communicator. Collective.
std::unique_ptr<Communicator> make_nccl_communicator(mpi::Comm const& world,
                                                     gpu::Device const& device,
                                                     trace::Recorder* recorder,
                                                     std::chrono::nanoseconds timeout,
                                                     std::unique_ptr<Pulse> pulse = nullptr);

}  // namespace stratagem
