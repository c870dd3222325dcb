#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "mpi/comm.hpp"
#include "train/progress_display.hpp"

namespace stratagem::app {

/// One word after `stratagem`, with options of its own.
struct Command {
  std::string name;
  std::string usage;    ///< what follows the name
  std::string summary;  ///< one line
  /// `arguments` follow the command's name.
  ExitCode (*execute)(Command const& command, std::vector<std::string> const& arguments);
};

// One file each.
ExitCode execute_run(Command const&, std::vector<std::string> const&);
ExitCode execute_plan(Command const&, std::vector<std::string> const&);
ExitCode execute_demo(Command const&, std::vector<std::string> const&);
ExitCode execute_info(Command const&, std::vector<std::string> const&);
ExitCode execute_list(Command const&, std::vector<std::string> const&);
ExitCode execute_calibrate(Command const&, std::vector<std::string> const&);
ExitCode execute_commbench(Command const&, std::vector<std::string> const&);
ExitCode execute_sweep(Command const&, std::vector<std::string> const&);
ExitCode execute_status(Command const&, std::vector<std::string> const&);
ExitCode execute_collect(Command const&, std::vector<std::string> const&);
ExitCode execute_replay(Command const&, std::vector<std::string> const&);
ExitCode execute_simulate(Command const&, std::vector<std::string> const&);
ExitCode execute_validate(Command const&, std::vector<std::string> const&);
ExitCode execute_checkpoint(Command const&, std::vector<std::string> const&);
ExitCode execute_export_weights(Command const&, std::vector<std::string> const&);
ExitCode execute_export_trace(Command const&, std::vector<std::string> const&);

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
