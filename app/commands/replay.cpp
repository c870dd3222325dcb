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
namespace {

/// Each rank's trace has the configuration as it was when the run began.
void require_own_configuration(std::string const& text, trace::RunTraces const& traces,
                               std::filesystem::path const& file) {
  auto const& provenance = traces.ranks.front().provenance;
  auto const begun_with = provenance.find("config");
  if (begun_with == provenance.end() || std::get<std::string>(begun_with->second) == text) return;
  throw Error(ExitCode::usage, file.string() + " is not what the run began with",
              "its traces have another configuration", "undo the changes to the file");
}

}  // namespace

void declare_replay(Options& options) {
  options.add_word({.name = "DIR", .meaning = "the run directory of an asynchronous run"});
  options.add_example("stratagem replay runs/async",
                      "compare the bits of the replay with those of the run");
}

ExitCode execute_replay(Options const& options) {
  std::filesystem::path const run = options.words().front();
  auto const file = run / "config.yaml";
  auto const text = read_yaml_file(file);
  auto const config = parse_config(text, file.string(), {}, known_names(), process_variable);
  auto const outcome = read_outcome(run);
  if (!outcome || outcome->status != RunStatus::complete)
    throw Error(ExitCode::usage, run.string() + " holds no run that came to its end",
                "only a whole run can be compared", "name another, or --resume it first");
  auto const traces = trace::collect_run(run);
  require_own_configuration(text, traces, file);
  auto const replayed = replay_run(config, traces);
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
