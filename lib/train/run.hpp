#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/console/log.hpp"
#include "base/console/progress_display.hpp"
#include "base/failpoint.hpp"
#include "mpi/comm.hpp"
#include "plan/run_config.hpp"
#include "run_files/run_directory.hpp"
#include "train/checkpoint/resume.hpp"
#include "train/signal_watch.hpp"

namespace stratagem {

/// A run as the command line asks for it; the same on every rank.
struct RunRequest {
  RunConfig config;
  std::string effective_config;               ///< `config` as YAML, for the run directory
  std::map<std::string, std::string> values;  ///< its values, by path
  std::vector<std::string> arguments;         ///< of the command line, for the manifest
  /// The values of the configuration that a run directory holds; empty where it cannot be read.
  std::function<std::map<std::string, std::string>(std::filesystem::path const&)> values_in;
  Existing existing = Existing::refuse;
  ResumeMode resume_mode = ResumeMode::exact;  ///< of a resumed run
  Failpoints failpoints;                       ///< of this rank, for tests
  ProgressStyle progress = ProgressStyle::automatic;
};

/// Trains and evaluates; writes the run directory. Collective over `world`. Everything that can be
/// known to fail is refused before the first step, by an AgreedError. Returns done, saved when a
/// signal ended it between two steps, or io when the trace could not be written to its end.
ExitCode run(RunRequest const& request, mpi::Comm const& world, SignalWatch& signals, Log& log);

}  // namespace stratagem
