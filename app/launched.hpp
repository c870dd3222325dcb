#pragma once

#include "mpi/launcher.hpp"

namespace stratagem::app {

/// Rank of this process among those that a launcher (mpirun, srun, another MPI's) started with it;
/// 0 where there is none. Without MPI: what the environment tells.
int launched_rank(mpi::Environment const& environment);

/// Whether a launcher started this process as one of several, or so that it cannot start others.
bool launched_with_others(mpi::Environment const& environment);

}  // namespace stratagem::app
