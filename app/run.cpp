#include "train/run.hpp"

#include <iostream>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "config/parse.hpp"
#include "config/print.hpp"
#include "train/plan_report.hpp"
#include "train/setup.hpp"

namespace stratagem::app {
namespace {

/// Rank 0 reads the file and its environment; everyone gets what it understood.
RunConfig agree_on_configuration(Options const& options, mpi::Comm const& world) {
  auto const text = from_rank_0(world, [&] { return print_config(read_configuration(options)); });
  return parse_config(text, "the configuration of rank 0", {}, known_names(), process_variable);
}

Existing existing(Options const& options) {
  if (options.has("resume") && options.flag("overwrite"))
    throw Error(ExitCode::usage, "--resume and --overwrite contradict each other");
  if (options.has("resume")) return Existing::resume;
  return options.flag("overwrite") ? Existing::overwrite : Existing::refuse;
}

Likeness likeness(Options const& options) {
  if (!options.has("resume") || options.text("resume") == "exact") return Likeness::exact;
  if (options.text("resume") == "compatible") return Likeness::compatible;
  throw Error(ExitCode::usage, "--resume=" + options.text("resume") + " is unknown", {},
              "take exact or compatible");
}

}  // namespace

ExitCode execute_run(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  add_configuration(options);
  options.add()("resume", text_value_if_given("exact"),
                "go on with an unfinished run from its newest checkpoint; a finished one is left "
                "as it is. =compatible: even where the numbers become others")(
      "overwrite", flag_value(), "move an existing run directory aside")(
      "dry-run", flag_value(), "check everything, data included, and show the plan")(
      "print-config", flag_value(), "show the effective configuration and end");
  if (!options.parse(arguments)) return ExitCode::done;
  auto const common = options.common();
  RunRequest request{.arguments = arguments,
                     .existing = existing(options),
                     .likeness = likeness(options),
                     .progress = common.progress};
  SignalWatch signals;
  return with_mpi(common, arguments, [&](mpi::Comm const& world, Log& log) {
    request.failpoints = on_all_ranks(world, [&] {
      return Failpoints(process_variable("STRATAGEM_FAIL").value_or(""), world.rank());
    });
    request.config = agree_on_configuration(options, world);
    request.effective_config = print_config(request.config);
    request.values = config_values(request.config);
    if (options.flag("print-config")) {
      if (world.rank() == 0) std::cout << request.effective_config;
      return ExitCode::done;
    }
    if (options.flag("dry-run")) {
      auto const setup = set_up(request.config, world, log);
      if (world.rank() == 0) std::cout << plan_text(setup.plan, setup.model);
      return ExitCode::done;
    }
    return run(request, world, signals, log);
  });
}

}  // namespace stratagem::app
