#include "app/launched.hpp"

#include "base/text.hpp"

namespace stratagem::app {
namespace {

int number(mpi::Environment const& environment, char const* name, int fallback) {
  auto const text = environment(name);
  return text ? static_cast<int>(parse_integer(*text).value_or(fallback)) : fallback;
}

/// Of a job step. A batch script has SLURM_PROCID and SLURM_NTASKS, too, but is no step.
int tasks_of_step(mpi::Environment const& environment) {
  return number(environment, "SLURM_STEP_NUM_TASKS", 1);
}

}  // namespace

int launched_rank(mpi::Environment const& environment) {
  for (auto const* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (environment(name)) return number(environment, name, 0);
  return tasks_of_step(environment) > 1 ? number(environment, "SLURM_PROCID", 0) : 0;
}

bool launched_with_others(mpi::Environment const& environment) {
  return environment("OMPI_COMM_WORLD_SIZE") || number(environment, "PMI_SIZE", 1) > 1 ||
         tasks_of_step(environment) > 1;
}

}  // namespace stratagem::app
