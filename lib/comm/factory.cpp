#include "comm/factory.hpp"

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/mpi/mpi_world.hpp"
#include "comm/nccl/nccl_world.hpp"
#include "comm/serial/serial_world.hpp"

namespace stratagem {
namespace {

/// From version 2.30 on, NCCL allows several ranks on one GPU if this is set. For tests.
bool nccl_shares_gpus() {
  auto const* set = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return set != nullptr && std::string_view(set) == "1";
}

/// Error(usage) for a chain that could never be.
void check_chain(CommConfig const& config) {
  if (config.node.algorithm != CommAlgorithm::chain) return;
  if (config.node.memory == NodeMemoryMode::off)
    throw Error(ExitCode::usage, "comm.algorithm: chain together with comm.node_memory: off",
                "the ranks of a node add up in memory that they share", "leave one of the two out");
  if (config.backend == CommBackend::nccl)
    throw Error(ExitCode::usage, "comm.algorithm: chain together with comm.backend: nccl",
                "NCCL chooses its algorithms itself", "leave one of the two out");
}

}  // namespace

CommBackend choose_backend(CommConfig const& config, ProcessInfo const& process) {
  check_chain(config);
  bool const has_gpu = process.device.kind == gpu::DeviceKind::cuda;
  if (config.backend == CommBackend::automatic)
    return has_gpu && !process.shares_device ? CommBackend::nccl : CommBackend::mpi;
  if (config.backend != CommBackend::nccl) return config.backend;
  if (!has_gpu)
    throw Error(ExitCode::environment, "comm.backend: nccl needs a GPU", gpu::availability().reason,
                "take comm.backend: mpi, or run where there is a GPU");
  if (process.shares_device && !nccl_shares_gpus())
    throw Error(ExitCode::environment, "comm.backend: nccl needs a GPU for each rank",
                str("some of the ", process.size, " ranks share one or have none"),
                "start as many ranks per node as it has GPUs, or take comm.backend: mpi");
  return CommBackend::nccl;
}

std::unique_ptr<World> make_world(CommConfig const& config, ProcessInfo const& process,
                                  mpi::Comm const& comm, trace::Recorder* recorder,
                                  std::unique_ptr<PeriodicTask> periodic_task) {
  auto const backend = choose_backend(config, process);
  std::chrono::seconds const timeout(config.timeout_s);
  if (process.size == 1) return std::make_unique<SerialWorld>(process.device);
  if (backend == CommBackend::nccl)
    return make_nccl_world(comm, process.device, recorder, timeout, std::move(periodic_task));
  return std::make_unique<MpiWorld>(comm, process.device, recorder, timeout,
                                    std::chrono::microseconds(config.delay_us),
                                    std::move(periodic_task), config.node);
}

}  // namespace stratagem
