#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/console/log.hpp"
#include "base/console/progress_display.hpp"
#include "mpi/comm.hpp"

namespace stratagem::app {

class Options;

/// What becomes of a command where a launcher starts several processes of it.
enum class Ranks {
  together,  ///< they work together, by MPI
  first,     ///< the first does the work; the others end at once, without a word
  refused,   ///< it starts the launcher itself: Error(environment)
};

/// One word after `stratagem`, with options of its own.
struct Command {
  std::string name;
  std::string summary;  ///< one line
  Ranks ranks;
  /// Tells the options, words and examples without running anything.
  void (*declare)(Options& options);
  ExitCode (*execute)(Options const& options);
};

// One file each.
void declare_run(Options& options);
void declare_plan(Options& options);
void declare_demo(Options& options);
void declare_init(Options& options);
void declare_info(Options& options);
void declare_help(Options& options);
void declare_list(Options& options);
void declare_model(Options& options);
void declare_data(Options& options);
void declare_calibrate(Options& options);
void declare_commbench(Options& options);
void declare_sweep(Options& options);
void declare_status(Options& options);
void declare_collect(Options& options);
void declare_replay(Options& options);
void declare_simulate(Options& options);
void declare_validate(Options& options);
void declare_checkpoint(Options& options);
void declare_export_weights(Options& options);
void declare_sample(Options& options);
void declare_export_trace(Options& options);
void declare_completion(Options& options);
ExitCode execute_run(Options const& options);
ExitCode execute_plan(Options const& options);
ExitCode execute_demo(Options const& options);
ExitCode execute_init(Options const& options);
ExitCode execute_info(Options const& options);
ExitCode execute_help(Options const& options);
ExitCode execute_list(Options const& options);
ExitCode execute_model(Options const& options);
ExitCode execute_data(Options const& options);
ExitCode execute_calibrate(Options const& options);
ExitCode execute_commbench(Options const& options);
ExitCode execute_sweep(Options const& options);
ExitCode execute_status(Options const& options);
ExitCode execute_collect(Options const& options);
ExitCode execute_replay(Options const& options);
ExitCode execute_simulate(Options const& options);
ExitCode execute_validate(Options const& options);
ExitCode execute_checkpoint(Options const& options);
ExitCode execute_export_weights(Options const& options);
ExitCode execute_sample(Options const& options);
ExitCode execute_export_trace(Options const& options);
ExitCode execute_completion(Options const& options);

std::vector<Command> const& commands();

/// The options that every command has.
struct CommonOptions {
  LogLevel level = LogLevel::info;
  bool color = false;  ///< of what goes to stderr
  ProgressStyle progress = ProgressStyle::automatic;
};

/// Runs `body` between the start and the end of MPI. An AgreedError ends every rank by itself, with
/// rank 0 telling; any other exception ends the whole job at once.
ExitCode with_mpi(CommonOptions const& common, std::vector<std::string> const& arguments,
                  std::function<ExitCode(mpi::Comm const& world, Log& log)> const& body);

}  // namespace stratagem::app
