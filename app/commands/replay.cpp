#include <filesystem>
#include <iostream>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "config/yaml_file.hpp"
#include "offline/local_run.hpp"
#include "run_files/outcome.hpp"

namespace stratagem::app {

void declare_replay(Options& options) {
  options.add_word({.name = "DIR", .meaning = "the run directory of an asynchronous run"});
  options.add_example("stratagem replay runs/async",
                      "compare the bits of the replay with those of the run");
}

ExitCode execute_replay(Options const& options) {
  std::filesystem::path const run = options.words().front();
  auto const file = run / "config.yaml";
  auto const config =
      parse_config(read_yaml_file(file), file.string(), {}, known_names(), process_variable);
  auto const outcome = read_outcome(run);
  if (!outcome || outcome->status != RunStatus::complete)
    throw Error(ExitCode::usage, run.string() + " holds no run that came to its end",
                "only a whole run can be compared", "name another, or --resume it first");
  auto const replayed = replay_run(config, trace::collect_run(run));
  if (replayed.digest != outcome->digest)
    throw Error(ExitCode::diverged,
                str("the replay ends with parameters ", replayed.digest, ", the run with ",
                    outcome->digest),
                "another version, processor or number of threads computes other bits",
                "manifest.json says what the run was made with");
  std::cout << "replayed " << format_count(replayed.pushes) << " pushes to " << replayed.servers
            << (replayed.servers == 1 ? " server" : " servers") << ": parameters "
            << replayed.digest << ", bit for bit those of the run\n";
  return ExitCode::done;
}

}  // namespace stratagem::app
