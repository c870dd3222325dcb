#include "plan/gpus_of_job.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/build_info.hpp"
#include "base/text.hpp"
#include "gpu/device.hpp"

namespace stratagem {
namespace {

constexpr char visible[] = "CUDA_VISIBLE_DEVICES";

bool hides_all(std::string const& devices) {
  constexpr std::array<std::string_view, 3> none{"", "-1", "NoDevFiles"};
  return std::ranges::find(none, devices) != none.end();
}

/// The first variable that tells of GPUs, such as "SLURM_JOB_GPUS=0,1"; empty: none does.
std::string sign_of_gpus(mpi::Environment const& environment) {
  if (auto const devices = environment(visible); devices && hides_all(*devices)) return {};
  for (auto const* list : {"SLURM_JOB_GPUS", "SLURM_STEP_GPUS", visible})
    if (auto const devices = environment(list); devices && !devices->empty())
      return str(list, "=", *devices);
  constexpr char count[] = "SLURM_GPUS_ON_NODE";
  if (auto const gpus = environment(count); gpus && !gpus->empty() && *gpus != "0")
    return str(count, "=", *gpus);
  return {};
}

}  // namespace

std::optional<Error> unused_gpus(mpi::Environment const& environment) {
  auto const gpus = gpu::availability();
  if (gpus.count > 0) return std::nullopt;
  auto const sign = sign_of_gpus(environment);
  if (sign.empty()) return std::nullopt;
  bool const for_cpus = build_info().flavour == "cpu";
  return Error(ExitCode::environment,
               str("this job holds GPUs (", sign, "), and the program can use none"), gpus.reason,
               str(for_cpus ? "build the program for GPUs: modules/bootstrap.sh build --gpu"
                            : "see `stratagem info`",
                   "; to do without them, set run.device: cpu, or CUDA_VISIBLE_DEVICES=-1"));
}

}  // namespace stratagem
