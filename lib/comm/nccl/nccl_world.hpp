#pragma once

#include <chrono>
#include <memory>

#include "comm/work/periodic_task.hpp"
#include "comm/world.hpp"
#include "gpu/device.hpp"
#include "mpi/comm.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// NCCL collectives between GPUs, on a separate high-priority stream for each group, with one rank
/// per GPU. Point-to-point uses MPI, because NCCL has no tags; so do groups when they form. The
/// thread rules of MpiWorld apply. `recorder` may be null; spans last from submission until
/// completion is noticed.
///
/// Error(environment) on all ranks if NCCL cannot start, or if this build does not contain it. An
/// operation that fails ends in Error(peer_lost); one that takes longer than `timeout` ends in
/// Error(stall). Both abort the group's NCCL. Collective.
std::unique_ptr<World> make_nccl_world(mpi::Comm const& comm, gpu::Device const& device,
                                       trace::Recorder* recorder, std::chrono::nanoseconds timeout,
                                       std::unique_ptr<PeriodicTask> periodic_task = nullptr);

}  // namespace stratagem
