#include <filesystem>
#include <iostream>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "train/local_run.hpp"
#include "train/outcome.hpp"

namespace stratagem::app {

ExitCode execute_replay(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  options.add_positional("directory", 1);
  if (!options.parse(arguments)) return ExitCode::done;
  auto const directories = options.texts("directory");
  if (directories.empty())
    throw Error(ExitCode::usage, "replay what?", {}, "name the directory of an asynchronous run");
  std::filesystem::path const run = directories.front();
  auto const file = run / "config.yaml";
  auto const config = parse_config(read_text(file, ExitCode::usage), file.string(), {},
                                   known_names(), process_variable);
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
