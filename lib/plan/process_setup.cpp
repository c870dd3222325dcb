#include "plan/process_setup.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <ATen/Context.h>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/factory.hpp"
#include "plan/gpus_of_job.hpp"
#include "strategy/registry.hpp"

namespace stratagem {

ProcessInfo choose_device(ProcessInfo process, DeviceChoice choice,
                          mpi::Environment const& environment) {
  if (choice == DeviceChoice::cpu) {
    process.device = {};
    process.shares_device = false;
    return process;
  }
  if (process.device.kind == gpu::DeviceKind::cuda) return process;
  if (auto const unused = unused_gpus(environment)) throw *unused;
  if (choice == DeviceChoice::cuda)
    throw Error(ExitCode::environment, "run.device: cuda, but this rank has no GPU",
                gpu::availability().reason,
                str(build_info().flavour == "cpu" ? "take a program that is built for GPUs"
                                                  : "ask the scheduler for a GPU",
                    ", or set run.device: cpu"));
  return process;
}

bool is_server(StrategyConfig const& strategy, int rank, int ranks) {
  return place_ranks(strategy, ranks).serves(rank);
}

CommConfig comm_of(StrategyConfig const& strategy, CommConfig comm) {
  if (servers_of(strategy) == 0) return comm;
  if (comm.backend == CommBackend::nccl)
    throw Error(ExitCode::usage,
                str("comm.backend: nccl together with strategy ", name_of(strategy)),
                "servers keep parameters on the host, and wait for whichever worker comes first",
                "leave comm.backend out, or take comm.backend: mpi");
  comm.backend = CommBackend::mpi;
  return comm;
}

void check_threads(RunOptions const& run, ProcessInfo const& process) {
  constexpr int always = 64, per_core = 4;
  auto const cores = static_cast<int>(process.cores.size());
  auto const most = std::max(always, per_core * cores);
  if (run.threads <= most) return;
  throw Error(ExitCode::environment,
              str("run.threads: ", run.threads, " are too many on ", process.host),
              str("a rank may use ", cores, " cores there"),
              str("take ", most, " or less, or 0 for as many as the cores"));
}

std::string host_and_cores(ProcessInfo const& process) {
  auto text = process.host;
  for (int const core : process.cores) text += str(" ", core);
  return text;
}

int choose_threads(RunOptions const& run, ProcessInfo const& process, mpi::Comm const& world,
                   Log& log) {
  auto const mine = host_and_cores(process);
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

void warn_of_crowding(int threads, bool computes, ProcessInfo const& process,
                      mpi::Comm const& world, Log& log) {
  auto const mine = computes ? host_and_cores(process) : "";
  auto const all = world.all_gather(mine);
  auto const sharing = std::count(all.begin(), all.end(), mine);
  auto const cores = std::ssize(process.cores);
  bool const crowded = computes && sharing * threads > cores;
  auto const told =
      world.all_gather(crowded ? str(sharing, sharing == 1 ? " rank x " : " ranks x ", threads,
                                     threads == 1 ? " thread" : " threads", " compute on ", cores,
                                     cores == 1 ? " core" : " cores", " of ", process.host)
                               : "");
  auto const first = std::ranges::find_if_not(told, &std::string::empty);
  if (first != told.end() && world.rank() == 0)
    log.warning(*first + ", and wait for one another; start fewer ranks, or lower run.threads");
}

void check_precision(PrecisionConfig const& precision, gpu::Device const& device) {
  auto const compute = precision.compute;
  bool const needs_gpu = compute == Precision::fp16 || compute == Precision::tf32;
  if (!needs_gpu || device.kind != gpu::DeviceKind::cpu) return;
  auto const* name = precision_names.at(static_cast<std::size_t>(compute));
  throw Error(ExitCode::environment, str("precision.compute: ", name, " needs a GPU"),
              "this rank computes on a CPU", "take fp32 or bf16, or run where there is a GPU");
}

bool keeps_graph(RunConfig const& config, StrategyPlan const& plan, ProcessInfo const& process) {
  bool const on_gpu = process.device.kind == gpu::DeviceKind::cuda;
  bool const through_host =
      process.size > 1 &&
      choose_backend(comm_of(config.strategy, config.comm), process) != CommBackend::nccl;
  if (config.run.graph == GraphMode::on) {
    auto const cure = "take run.graph: auto";
    if (!plan.steps_can_be_kept)
      throw Error(ExitCode::usage,
                  str("run.graph: on together with strategy.name: ", name_of(config.strategy)),
                  "strategy, compression or model wait for the host within a step", cure);
    if (!on_gpu)
      throw Error(ExitCode::environment, "run.graph: on needs a GPU", "this rank computes on a CPU",
                  cure);
    if (through_host)
      throw Error(ExitCode::environment, "run.graph: on needs comm.backend: nccl",
                  "sums over MPI pass through the host", cure);
  }
  return config.run.graph != GraphMode::off && plan.steps_can_be_kept && on_gpu && !through_host;
}

void choose_kernels(RunConfig const& config, gpu::Device const& device) {
  if (device.kind == gpu::DeviceKind::cpu) return;
  bool const same_bits = config.run.deterministic;
  bool const rounds = config.precision.compute == Precision::tf32;
  auto& context = at::globalContext();
  context.setBenchmarkCuDNN(!same_bits);
  context.setDeterministicCuDNN(same_bits);
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicAlgorithms(same_bits, /*warn_only=*/true);
  if (same_bits) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  context.setAllowTF32CuDNN(rounds);
  context.setAllowTF32CuBLAS(rounds);
}

}  // namespace stratagem
