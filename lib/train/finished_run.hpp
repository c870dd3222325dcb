#pragma once

#include "base/console/log.hpp"
#include "mpi/comm.hpp"
#include "run_files/run_directory.hpp"
#include "train/run.hpp"
#include "train/setup.hpp"

namespace stratagem {

/// Whether a run that has come to its end is to be trained further, now that it is to be resumed:
/// true where more steps or more time are asked for than it had, or where it could not write its
/// last step or weights; false where it is what is asked for. Error(checkpoint) listing what
/// differs otherwise: other work, or less of it. Collective.
bool goes_further(RunRequest const& request, RunDirectory const& directory, Setup const& setup,
                  mpi::Comm const& world, Log& log);

}  // namespace stratagem
