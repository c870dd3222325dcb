#pragma once

#include <memory>

#include "comm/comm_config.hpp"
#include "comm/communicator.hpp"
#include "comm/process_info.hpp"
#include "comm/work/pulse.hpp"
#include "mpi/comm.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// The backend that `config` means for this rank, never automatic. Error(environment) when it
/// cannot be had; none is taken instead.
CommBackend choose_backend(CommConfig const& config, ProcessInfo const& process);

/// The communicator of all ranks: serial for one rank; else the backend that `config` names, where
/// automatic is NCCL if every rank has a GPU of its own, and MPI otherwise. Collective over
/// `world`. `recorder` and `pulse`, which the thread that talks to other ranks beats, may be null.
/// Error(environment) when the backend cannot be had; none is
/// taken instead.
std::unique_ptr<Communicator> make_communicator(CommConfig const& config,
                                                ProcessInfo const& process, mpi::Comm const& world,
                                                trace::Recorder* recorder,
                                                std::unique_ptr<Pulse> pulse = nullptr);

}  // namespace stratagem
