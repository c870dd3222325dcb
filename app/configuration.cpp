#include "app/configuration.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "data/dataset.hpp"
#include "model/model.hpp"

namespace stratagem::app {

void add_configuration(Options& options) {
  options.add_positional("config", 1);
  options.add()("set,s", texts_value(),
                "KEY=VALUE: replace a key of CONFIG, such as optimizer.lr=0.1")(
      "out", text_value(), "run directory, instead of run.out")(
      "max-steps", text_value(), "end after so many steps, instead of run.max_steps");
}

KnownNames known_names() {
  KnownNames names;
  for (auto const& entry : dataset_catalogue()) names.datasets.push_back(entry.name);
  for (auto const& entry : model_zoo()) names.models.push_back(entry.name);
  return names;
}

RunConfig read_configuration(Options const& options) {
  auto const files = options.texts("config");
  if (files.empty())
    throw Error(ExitCode::usage, "CONFIG is missing", {},
                "name a YAML file, such as inputs/smoke/digits-lenet-ddp.yaml");
  auto overrides = options.texts("set");
  if (options.has("out")) overrides.push_back("run.out=" + options.text("out"));
  if (options.has("max-steps")) overrides.push_back("run.max_steps=" + options.text("max-steps"));
  return parse_config(read_text(files.front(), ExitCode::usage), files.front(), overrides,
                      known_names(), process_variable);
}

}  // namespace stratagem::app
