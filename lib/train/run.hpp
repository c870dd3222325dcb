#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "mpi/comm.hpp"
#include "train/progress_display.hpp"
#include "train/run_config.hpp"
#include "train/run_directory.hpp"

namespace stratagem {

/// A run as the command line asks for it; the same on every rank.
struct RunRequest {
  RunConfig config;
  std::string effective_config;        ///< `config` as YAML, for the run directory
  std::vector<std::string> arguments;  ///< of the command line, for the manifest
  Existing existing = Existing::refuse;
  ProgressStyle progress = ProgressStyle::automatic;
};

/// Trains and evaluates; writes the run directory. Collective over `world`. Everything that can be
/// known to fail is refused before the first step, by an AgreedError. Returns done, or io when the
/// trace could not be written to its end.
ExitCode run(RunRequest const& request, mpi::Comm const& world, Log& log);

}  // namespace stratagem
