#pragma once

#include <optional>

#include "base/error.hpp"
#include "mpi/launcher.hpp"

namespace stratagem {

/// Error(environment) where the environment says that this process's job holds GPUs, and this
/// program finds none: a build for CPUs, or a driver that does not fit. SLURM_JOB_GPUS,
/// SLURM_STEP_GPUS, SLURM_GPUS_ON_NODE and CUDA_VISIBLE_DEVICES are asked; the last one hides all
/// GPUs on purpose where it is empty, -1 or NoDevFiles, and then nothing is held.
/// NVIDIA_VISIBLE_DEVICES is not asked: images of containers set it to `all` where there is no GPU.
std::optional<Error> unused_gpus(mpi::Environment const& environment);

}  // namespace stratagem
