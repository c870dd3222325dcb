#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace stratagem::mpi {

/// Looks up an environment variable; empty if it is not set.
using Environment = std::function<std::optional<std::string>(char const*)>;

Environment process_environment();

/// What started this process: "mpirun (Open MPI, ORTE)" up to Open MPI 4, "mpirun (Open MPI 5.0.7,
/// PRRTE)" from 5 on, "srun (Slurm, PMIx)", or "none".
std::string launcher_name(Environment const& environment);

/// True if a launcher started this process, so that MPI must be initialised.
bool launched(Environment const& environment);

/// True if a launcher says that all ranks are on this node.
bool on_one_node(Environment const& environment);

/// True for N processes that each believe to be the only rank: started by a launcher that this MPI
/// library does not know, or without a launcher in a Slurm allocation of several tasks.
std::optional<Error> singleton_problem(int world_size, Environment const& environment);

}  // namespace stratagem::mpi
