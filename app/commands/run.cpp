#include "train/run.hpp"

#include <chrono>
#include <cstring>
#include <iostream>
#include <optional>

#include "app/configuration.hpp"
#include "app/launched.hpp"
#include "base/console/shell_words.hpp"
#include "base/console/terminal.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "config/parse.hpp"
#include "config/print.hpp"
#include "config/yaml_file.hpp"
#include "mpi/launcher.hpp"
#include "mpi/session.hpp"
#include "predict/reports/plan_report.hpp"
#include "train/setup.hpp"

namespace stratagem::app {
namespace {

/// Rank 0 reads the file and its environment; everyone gets what it understood.
RunConfig agree_on_configuration(Options const& options, mpi::Comm const& world) {
  std::optional<RunConfig> own;
  auto const text = from_rank_0(world, [&] {
    own = read_configuration(options);
    return print_config(*own);
  });
  if (own) return *own;
  return parse_config(text, "the configuration of rank 0", {}, known_names(), process_variable);
}

std::map<std::string, std::string> values_in(std::filesystem::path const& run_directory) {
  auto const file = run_directory / "config.yaml";
  try {
    return config_values(
        parse_config(read_yaml_file(file), file.string(), {}, known_names(), process_variable));
  } catch (Error const&) {
    return {};  // another version's
  }
}

Existing existing(Options const& options) {
  if (options.has("resume") && options.flag("overwrite"))
    throw Error(ExitCode::usage, "--resume and --overwrite contradict each other");
  if (options.has("resume")) return Existing::resume;
  return options.flag("overwrite") ? Existing::overwrite : Existing::refuse;
}

ResumeMode resume_mode(Options const& options) {
  bool const compatible = options.has("resume") && options.text("resume") == "compatible";
  return compatible ? ResumeMode::compatible : ResumeMode::exact;
}

/// One rank tells what all find out; MPI has not started yet.
bool speaks() {
  return launched_rank(mpi::process_environment()) == 0;
}

void say(std::string const& text) {
  if (speaks()) std::cerr << "stratagem: " << text << std::endl;
}

SignalWatch::Reactions before_training() {
  return {
      .interrupt =
          [] { say("a signal asks to save and stop: after the first step; Ctrl-C ends at once"); },
      .flush = {},
      .end_is_near = {},
      .end =
          [](int signal) {
            say(str("ended by signal ", signal, " (", ::strsignal(signal),
                    ") before the training began: nothing is lost"));
          },
      .tries_to_save = {}};
}

/// mpirun's KILL comes a second after its TERM, or sooner; batch systems leave more to a process
/// that they started themselves.
SignalWatch::Milliseconds time_to_save() {
  return SignalWatch::Milliseconds(mpi::launched(mpi::process_environment()) ? 700 : 5000);
}

/// Who forgets the launcher gets a run that compares nothing.
void warn_of_one_rank(RunConfig const& config, std::vector<std::string> const& arguments,
                      mpi::Comm const& world, Log& log) {
  bool const spreads = !works_on_one_rank(config.strategy) && servers_of(config.strategy) == 0;
  if (!spreads || world.size() > 1 || config.run.ranks == 1) return;
  log.warning(str("strategy ", name_of(config.strategy),
                  " has one rank, so nothing is communicated; start several with `mpirun "
                  "--bind-to none -n 2 stratagem run ",
                  shell_words(arguments), "`, or set run.ranks: 1 if one is meant"));
}

}  // namespace

void declare_run(Options& options) {
  options.add_word({.name = "CONFIG", .meaning = config_file});
  add_run_overrides(options);
  options.add(
      {.name = "resume",
       .value = "HOW",
       .choices = {"exact", "compatible"},
       .alone = "exact",
       .meaning = "continue a run from its newest checkpoint: an unfinished one, or a finished one "
                  "that is to be longer. compatible: even if the numbers will differ"});
  options.add({.name = "overwrite", .meaning = "move an existing run directory aside"});
  options.add({.name = "dry-run", .meaning = "check everything, data included, and show the plan"});
  options.add({.name = "print-config", .meaning = "show the effective configuration and end"});
  options.add_example("mpirun --bind-to none -n 2 stratagem run inputs/smoke/digits-lenet-ddp.yaml",
                      "train on two ranks");
  options.add_example(
      "stratagem run inputs/smoke/digits-lenet-ddp.yaml -s strategy.name=serial -s "
      "optimizer.lr=0.1 --out runs/hot",
      "one rank, with two keys replaced");
  options.add_example(
      "mpirun --bind-to none -n 2 stratagem run inputs/smoke/digits-lenet-ddp.yaml --resume",
      "continue an interrupted run");
  options.add_example(
      "stratagem run inputs/smoke/digits-lenet-serial.yaml --resume -s run.epochs=3",
      "train a finished run further");
}

ExitCode execute_run(Options const& options) {
  if (mpi::launched(mpi::process_environment()) && speaks()) join_launchers_terminal();
  auto const common = options.common();
  RunRequest request{.arguments = options.arguments(),
                     .values_in = values_in,
                     .existing = existing(options),
                     .resume_mode = resume_mode(options),
                     .progress = common.progress};
  SignalWatch signals(time_to_save(), before_training());
  return with_mpi(common, options.arguments(), [&](mpi::Comm const& world, Log& log) {
    request.failpoints = on_all_ranks(world, [&] {
      return Failpoints(process_variable("STRATAGEM_FAIL").value_or(""), world.rank());
    });
    request.config = agree_on_configuration(options, world);
    mpi::Session::wait_at_most(world, std::chrono::seconds(request.config.comm.timeout_s));
    request.effective_config = print_config(request.config);
    request.values = config_values(request.config);
    if (options.flag("print-config")) {
      if (world.rank() == 0) std::cout << request.effective_config;
      return ExitCode::done;
    }
    warn_of_one_rank(request.config, options.arguments(), world, log);
    if (options.flag("dry-run")) {
      auto const setup = set_up(request.config, world, log);
      if (world.rank() == 0) std::cout << plan_text({setup.plan}, setup.model);
      return ExitCode::done;
    }
    return run(request, world, signals, log);
  });
}

}  // namespace stratagem::app
