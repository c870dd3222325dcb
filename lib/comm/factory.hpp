#pragma once

#include <memory>

#include "comm/comm_config.hpp"
#include "comm/process_info.hpp"
#include "comm/work/periodic_task.hpp"
#include "comm/world.hpp"
#include "mpi/comm.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// The backend that `config` selects for this rank, never automatic. Error(environment) if it is
/// not available; it is not replaced by another.
CommBackend choose_backend(CommConfig const& config, ProcessInfo const& process);

/// The ranks of `comm`: serial for one rank, otherwise by the backend in `config`. automatic means
/// NCCL if every rank has a GPU of its own, else MPI. Collective over `comm`. `recorder` and
/// `periodic_task` may be null; the thread that communicates calls `periodic_task` regularly.
/// Error(environment) if the backend is not available; it is not replaced by another.
std::unique_ptr<World> make_world(CommConfig const& config, ProcessInfo const& process,
                                  mpi::Comm const& comm, trace::Recorder* recorder,
                                  std::unique_ptr<PeriodicTask> periodic_task = nullptr);

}  // namespace stratagem
