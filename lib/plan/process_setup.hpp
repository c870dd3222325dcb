#pragma once

#include <string>

#include "base/console/log.hpp"
#include "comm/process_info.hpp"
#include "mpi/comm.hpp"
#include "mpi/launcher.hpp"
#include "plan/run_config.hpp"
#include "strategy/plan.hpp"

namespace stratagem {

/// `process` with the device that run.device asks for. Error(environment) when it is not there, or
/// where the GPUs of a job would be left unused without being asked to, see unused_gpus().
ProcessInfo choose_device(ProcessInfo process, DeviceChoice choice,
                          mpi::Environment const& environment = mpi::process_environment());

/// Whether a rank only serves parameters: it then computes on the host, whatever the workers do.
/// Error(usage) where `strategy` cannot have so many ranks.
bool is_server(StrategyConfig const& strategy, int rank, int ranks);

/// `comm`, of which a parameter server takes backend mpi: NCCL has no messages that somebody waits
/// for while he does something else. Error(usage) where `comm` asks for nccl.
CommConfig comm_of(StrategyConfig const& strategy, CommConfig comm);

/// Error(environment) for more threads than a rank on `process`'s cores could have a use for.
void check_threads(RunOptions const& run, ProcessInfo const& process);

/// "node17 0 1": ranks with the same text share their cores.
std::string host_and_cores(ProcessInfo const& process);

/// LibTorch's threads of this rank: run.threads, or the usable cores shared among the ranks that
/// have the same ones. Warns once, on rank 0, when a rank is bound so tightly that its helper
/// threads (communication, trace, loader) have no core of their own. Collective over `world`.
int choose_threads(RunOptions const& run, ProcessInfo const& process, mpi::Comm const& world,
                   Log& log);

/// Warns where the ranks that compute have more threads than cores. Collective.
void warn_of_crowding(int threads, bool computes, ProcessInfo const& process,
                      mpi::Comm const& world, Log& log);

/// Error(environment) when `precision` cannot be computed with on the device.
void check_precision(PrecisionConfig const& precision, gpu::Device const& device);

/// Whether this rank's steps are kept as a graph, see StepGraph. Error(usage) or Error(environment)
/// where `run.graph: on` asks for what cannot be.
bool keeps_graph(RunConfig const& config, StrategyPlan const& plan, ProcessInfo const& process);

/// Which kernels LibTorch takes on a GPU, in this process: the fastest by trying, or those that
/// give the same bits each time; and whether products of fp32 may be rounded to TF32. Comes before
/// the first of them; nothing to choose on the CPU.
void choose_kernels(RunConfig const& config, gpu::Device const& device);

}  // namespace stratagem
