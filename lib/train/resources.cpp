#include "train/resources.hpp"

#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {

ProcessInfo choose_device(ProcessInfo process, DeviceChoice choice) {
  if (choice == DeviceChoice::cpu) {
    process.device = {};
    process.shares_device = false;
  }
  if (choice == DeviceChoice::cuda && process.device.kind != gpu::DeviceKind::cuda)
    throw Error(ExitCode::environment, "run.device: cuda, but this rank has no GPU",
                gpu::availability().reason, "ask the scheduler for a GPU, or set run.device: cpu");
  return process;
}

int choose_threads(RunOptions const& run, ProcessInfo const& process, mpi::Comm const& world,
                   Log& log) {
  std::string mine = process.host;
  for (int core : process.cores) mine += str(" ", core);
  auto const all = world.all_gather(mine);
  auto const sharing = static_cast<int>(std::count(all.begin(), all.end(), mine));
  auto const cores = std::max<int>(static_cast<int>(process.cores.size()), 1);
  bool const tight = cores == 1 && std::thread::hardware_concurrency() > 1;
  if (tight && world.rank() == 0)
    log.warning(
        "each rank is bound to one core, which its computation and its helper threads "
        "(communication, trace, loader) "
        "must share; start with `mpirun --bind-to none`");
  return run.threads > 0 ? run.threads : std::max(cores / sharing, 1);
}

void check_precision(PrecisionConfig const& precision, gpu::Device const& device) {
  if (precision.compute == Precision::fp16 && device.kind == gpu::DeviceKind::cpu)
    throw Error(ExitCode::environment, "precision.compute: fp16 needs a GPU",
                "this rank computes on a CPU", "take fp32 or bf16, or run where there is a GPU");
}

}  // namespace stratagem
