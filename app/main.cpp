#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "app/command.hpp"
#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "h5/error.hpp"
#include "mpi/launcher.hpp"

namespace stratagem::app {

std::vector<Command> const& commands() {
  static std::vector<Command> const all{
      {"run", "CONFIG [options]", "Train as CONFIG says; start it with mpirun for several ranks.",
       execute_run},
      {"plan", "CONFIG|STUDY [options]",
       "Check a run, or all of a study, and show what it would do and hold.", execute_plan},
      {"demo", "[options]",
       "Train a small model on built-in data under every strategy and compare them.", execute_demo},
      {"info", "[options]", "Show versions, launcher, devices, and what is wrong with them.",
       execute_info},
      {"list", "models|datasets|strategies|keys", "Show what a configuration can name.",
       execute_list},
      {"commbench", "[options]", "Measure communication between the ranks.", execute_commbench},
      {"calibrate", "CONFIG|STUDY [options]",
       "Measure this machine, so that `plan` can tell the time of such runs.", execute_calibrate},
      {"sweep", "STUDY [options]",
       "Run the cells of a study: list them, run one or all of them, or go on.", execute_sweep},
      {"status", "DIR [options]", "Show how the cells of a study stand, by their files alone.",
       execute_status},
      {"collect", "DIR... [options]",
       "Join the traces of runs, or of a study's cells, and show a table.", execute_collect},
      {"replay", "DIR",
       "Make an asynchronous run again in one process, from its traces, and compare the bits.",
       execute_replay},
      {"simulate", "CONFIG [options]",
       "Train with a parameter server and workers that only a clock tells apart; needs no MPI.",
       execute_simulate},
      {"validate", "FILE|DIR...", "Check trace files against their schema.", execute_validate},
      {"checkpoint", "DIR... [options]", "List the checkpoints of runs and check every byte.",
       execute_checkpoint},
      {"export-weights", "CHECKPOINT|DIR FILE",
       "Write a checkpoint's weights as a safetensors file with torchvision's names.",
       execute_export_weights},
      {"export-trace", "DIR [options]", "Write a run's traces for Perfetto's timeline.",
       execute_export_trace},
  };
  return all;
}

namespace {

void print_usage(std::ostream& out) {
  out << "stratagem " << build_info().version
      << ": which data-parallel strategy for this model on this cluster?\n\n"
      << "usage: stratagem COMMAND [options]\n\ncommands:\n";
  for (auto const& command : commands()) {
    auto name = command.name;
    name.resize(15, ' ');
    out << "  " << name << command.summary << '\n';
  }
  out << "\n`stratagem COMMAND --help` tells more; `stratagem --version` the version.\n\nexit "
         "codes:\n";
  for (auto code : all_exit_codes) {
    auto number = std::to_string(to_int(code));
    number.insert(0, 3 - std::min<std::size_t>(number.size(), 3), ' ');
    out << "  " << number << "  " << describe(code) << '\n';
  }
}

/// Without MPI, all ranks find the same mistakes: one tells.
bool tells() {
  char const* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMIX_RANK");
  return rank == nullptr || std::string_view(rank) == "0";
}

ExitCode dispatch(std::vector<std::string> const& arguments) {
  if (arguments.empty()) {
    if (tells()) print_usage(std::cerr);
    return ExitCode::usage;
  }
  auto const& word = arguments.front();
  if (word == "--help" || word == "-h") {
    print_usage(std::cout);
    return ExitCode::done;
  }
  if (word == "--version") {
    auto const& info = build_info();
    std::cout << "stratagem " << info.version << " (" << info.git_sha
              << (info.git_dirty ? ", changed" : "") << ", " << info.flavour << ")\n";
    return ExitCode::done;
  }
  auto const command = std::find_if(commands().begin(), commands().end(),
                                    [&](auto const& c) { return c.name == word; });
  if (command == commands().end()) {
    std::vector<std::string> names;
    for (auto const& known : commands()) names.push_back(known.name);
    throw Error(ExitCode::usage, "unknown command \"" + word + "\"" + did_you_mean(word, names), {},
                "see `stratagem --help`");
  }
  return command->execute(*command, {arguments.begin() + 1, arguments.end()});
}

ExitCode guarded(std::vector<std::string> const& arguments) {
  try {
    return dispatch(arguments);
  } catch (Error const& error) {
    // Ranks that were told different things must hear of it: rank 0 may have nothing to complain
    // about.
    if (error.code() == ExitCode::usage && mpi::launched(mpi::process_environment()))
      return with_mpi(CommonOptions{}, arguments,
                      [&](auto const&, auto const&) -> ExitCode { throw AgreedError(error); });
    if (tells()) std::cerr << "stratagem: error: " << error.what() << '\n';
    return error.code();
  } catch (std::bad_alloc const&) {
    std::cerr << "stratagem: error: the host has no memory left\n";
    return ExitCode::out_of_memory;
  } catch (std::exception const& error) {
    std::cerr << "stratagem: error: " << error.what() << '\n';
    return ExitCode::unexpected;
  }
}

}  // namespace
}  // namespace stratagem::app

int main(int argc, char** argv) {
  // A full disk or quota is an error of a write, with a message, not a signal.
  std::signal(SIGXFSZ, SIG_IGN);
  stratagem::gpu::install_host_allocator();
  stratagem::h5::initialise_library();
  return stratagem::to_int(stratagem::app::guarded({argv + 1, argv + argc}));
}
