#include "mpi/launcher.hpp"

#include <cstdlib>

#include "base/text.hpp"

namespace stratagem::mpi {
namespace {

std::int64_t count(Environment const& environment, char const* name) {
  auto const text = environment(name);
  return text ? parse_integer(*text).value_or(1) : 1;
}

bool known_to_open_mpi(Environment const& environment) {
  return environment("OMPI_COMM_WORLD_SIZE").has_value() || environment("PMIX_RANK").has_value();
}

}  // namespace

Environment process_environment() {
  return [](char const* name) -> std::optional<std::string> {
    char const* value = std::getenv(name);
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::string launcher_name(Environment const& environment) {
  bool const prrte = environment("PRTE_LAUNCHED").has_value();
  if (environment("OMPI_COMM_WORLD_SIZE")) {
    if (auto const version = environment("OMPI_VERSION"); version && prrte)
      return str("mpirun (Open MPI ", *version, ", PRRTE)");
    return environment("OMPI_MCA_orte_ess_num_procs") ? "mpirun (Open MPI, ORTE)" : "mpirun";
  }
  if (!environment("PMIX_RANK")) return "none";
  if (prrte) return "prterun (PRRTE)";
  return environment("SLURM_STEP_ID") ? "srun (Slurm, PMIx)" : "PMIx";
}

bool launched(Environment const& environment) {
  return known_to_open_mpi(environment);
}

bool on_one_node(Environment const& environment) {
  if (auto const size = environment("OMPI_COMM_WORLD_SIZE"))
    return environment("OMPI_COMM_WORLD_LOCAL_SIZE") == size;
  return environment("SLURM_STEP_NUM_NODES") == "1";
}

std::optional<Error> singleton_problem(int world_size, Environment const& environment) {
  if (world_size != 1 || known_to_open_mpi(environment)) return std::nullopt;
  if (auto const tasks = count(environment, "SLURM_NTASKS"); tasks > 1)
    return Error(
        ExitCode::environment,
        str("started as 1 rank inside a Slurm allocation of ", tasks, " tasks"),
        "neither mpirun nor srun --mpi=pmix started this process",
        "start it with `mpirun --bind-to none stratagem ...` or `srun --mpi=pmix stratagem ...`");
  if (auto const ranks = count(environment, "PMI_SIZE"); ranks > 1)
    return Error(ExitCode::environment,
                 str("a launcher started ", ranks, " copies, each of which is 1 rank"),
                 "the launcher (PMI) belongs to another MPI library",
                 "use the mpirun that belongs to the MPI library this program is linked with");
  return std::nullopt;
}

}  // namespace stratagem::mpi
