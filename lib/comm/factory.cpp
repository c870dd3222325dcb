#include "comm/factory.hpp"

#include "base/error.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/serial/serial_communicator.hpp"

namespace stratagem {

std::unique_ptr<Communicator> make_communicator(CommConfig const& config,
                                                ProcessInfo const& process, mpi::Comm const& world,
                                                trace::Recorder* recorder) {
  if (config.backend == CommBackend::nccl && process.device.kind == gpu::DeviceKind::cpu)
    throw Error(ExitCode::environment, "comm.backend: nccl needs a GPU", gpu::availability().reason,
                "take backend: mpi, or run where there is a GPU");
  if (process.size == 1) return std::make_unique<SerialCommunicator>(process.device);
  return std::make_unique<MpiCommunicator>(world, process.device, recorder,
                                           std::chrono::seconds(config.timeout_s));
}

}  // namespace stratagem
