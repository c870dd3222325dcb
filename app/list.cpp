#include <iostream>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "config/keys.hpp"
#include "data/dataset.hpp"
#include "model/model.hpp"
#include "strategy/factory.hpp"

namespace stratagem::app {
namespace {

Table models() {
  Table table({{"model", Align::left},
               {"parameters"},
               {"tensors"},
               {"blocks"},
               {"channels"},
               {"least input"},
               {"", Align::left}});
  for (auto const& entry : model_zoo()) {
    auto const model =
        make_model({.name = entry.name},
                   {.channels = entry.input_channels > 0 ? entry.input_channels : 1, .size = 32});
    table.add_row({entry.name, format_count(model.parameter_count()),
                   std::to_string(model.parameter_tensors()), std::to_string(model.blocks.size()),
                   entry.input_channels > 0 ? std::to_string(entry.input_channels) : "any",
                   std::to_string(entry.smallest_input), entry.description});
  }
  return table;
}

Table datasets() {
  Table table({{"dataset", Align::left},
               {"image", Align::left},
               {"training"},
               {"test"},
               {"folder", Align::left},
               {"", Align::left}});
  for (auto const& entry : dataset_catalogue())
    table.add_row({entry.name,
                   str(entry.channels, " x ", entry.image_size, " x ", entry.image_size),
                   format_count(entry.train_images), format_count(entry.test_images),
                   entry.folder.empty() ? "-" : entry.folder, entry.description});
  return table;
}

Table strategies() {
  Table table({{"strategy", Align::left}, {"", Align::left}});
  for (auto const& entry : strategy_catalogue()) table.add_row({entry.name, entry.description});
  return table;
}

Table keys() {
  Table table({{"key", Align::left},
               {"type", Align::left},
               {"default", Align::left},
               {"range", Align::left},
               {"of", Align::left},
               {"meaning", Align::left}});
  for (auto const& key : describe_keys(known_names()))
    table.add_row({key.path, key.type, key.default_value, key.range, join(key.strategies, ", "),
                   key.meaning});
  return table;
}

}  // namespace

ExitCode execute_list(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  options.add_positional("what", 1);
  if (!options.parse(arguments)) return ExitCode::done;
  auto const what = options.texts("what");
  std::vector<std::string> const choices{"models", "datasets", "strategies", "keys"};
  if (what.empty())
    throw Error(ExitCode::usage, "list what?", {}, "take one of " + join(choices, ", "));
  if (what.front() == "models")
    std::cout << models().render();
  else if (what.front() == "datasets")
    std::cout << datasets().render();
  else if (what.front() == "strategies")
    std::cout << strategies().render();
  else if (what.front() == "keys")
    std::cout << keys().render();
  else
    throw Error(ExitCode::usage,
                "cannot list \"" + what.front() + "\"" + did_you_mean(what.front(), choices), {},
                "take one of " + join(choices, ", "));
  return ExitCode::done;
}

}  // namespace stratagem::app
