#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include "app/help.hpp"
#include "app/launched.hpp"
#include "app/options.hpp"
#include "app/screen.hpp"
#include "app/standard_streams.hpp"
#include "base/build_info.hpp"
#include "base/console/terminal.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "comm/failure.hpp"
#include "gpu/memory.hpp"
#include "h5/error.hpp"
#include "mpi/launcher.hpp"

namespace stratagem::app {
namespace {

int rank() {
  return launched_rank(mpi::process_environment());
}

void tell(std::string const& problem) {
  std::cerr << fold_lines("stratagem: error: " + problem + '\n', terminal_columns(STDERR_FILENO));
}

std::string version_text() {
  auto const& info = build_info();
  return str("stratagem ", info.version, " (", info.git_sha, info.git_dirty ? ", changed" : "",
             ", ", info.flavour, ")\n");
}

/// Where a launcher started several processes of it. Whether this one has work to do, or a reason
/// to refuse it. The others end well: a launcher may end them all, and drop what rank 0 said, as
/// soon as one fails.
bool takes_part(Command const& command) {
  auto const environment = mpi::process_environment();
  bool const first = launched_rank(environment) == 0;
  if (command.ranks == Ranks::refused && first && launched_with_others(environment))
    throw Error(ExitCode::environment, "`stratagem " + command.name + "` was started by a launcher",
                "it starts the ranks of its runs itself",
                "start it without mpirun or srun; --launcher says how its runs are started");
  return command.ranks == Ranks::together || first;
}

ExitCode dispatch(std::vector<std::string> const& arguments) {
  if (arguments.empty()) {
    if (rank() != 0) return ExitCode::done;
    std::cerr << usage_text();
    return ExitCode::usage;
  }
  auto const& word = arguments.front();
  if (word == "--help" || word == "-h" || word == "--version" || word == "-V") {
    if (rank() == 0)
      std::cout << (word == "--help" || word == "-h" ? usage_text() : version_text());
    return ExitCode::done;
  }
  auto const& command = find_command(word);
  Options options(command);
  std::vector<std::string> const following(arguments.begin() + 1, arguments.end());
  if (std::ranges::any_of(following, [](auto const& a) { return a == "--help" || a == "-h"; })) {
    if (rank() != 0) return ExitCode::done;
    options.parse(following);
    std::cout << help_text(options);
    return ExitCode::done;
  }
  if (!takes_part(command)) return ExitCode::done;
  options.parse(following);
  return command.execute(options);
}

/// Whether ranks that a launcher started wait for each other in such a command, or would if it were
/// one.
bool work_together(std::vector<std::string> const& arguments) {
  auto const command = std::ranges::find(commands(), arguments.front(), &Command::name);
  return mpi::launched(mpi::process_environment()) &&
         (command == commands().end() || command->ranks == Ranks::together);
}

ExitCode guarded(std::vector<std::string> const& arguments) {
  try {
    return dispatch(arguments);
  } catch (Error const& error) {
    // Ranks that were told different things must hear of it: rank 0 may have nothing to complain
    // about.
    if (error.code() == ExitCode::usage && work_together(arguments))
      return with_mpi(CommonOptions{}, arguments,
                      [&](auto const&, auto const&) -> ExitCode { throw AgreedError(error); });
    if (rank() == 0) tell(error.what());
    return error.code();
  } catch (std::exception const& failure) {
    auto const error = as_error(failure);
    tell(error.what());
    return error.code();
  }
}

}  // namespace
}  // namespace stratagem::app

int main(int argc, char** argv) {
  // A full disk or quota is an error of a write, with a message, not a signal.
  std::signal(SIGXFSZ, SIG_IGN);
  stratagem::allow_many_files();
  stratagem::app::secure_standard_streams();
  stratagem::gpu::install_host_allocator();
  stratagem::h5::initialise_library();
  stratagem::app::Screen screen;
  auto const code = stratagem::app::guarded({argv + 1, argv + argc});
  screen.flush();
  return stratagem::to_int(stratagem::app::after_writing_all(code));
}
