#include <algorithm>
#include <iostream>

#include <unistd.h>

#include "app/calibrations.hpp"
#include "app/configuration.hpp"
#include "base/console/terminal.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "config/json_schema.hpp"
#include "config/keys.hpp"
#include "data/dataset.hpp"
#include "data/synthetic/synthetic.hpp"
#include "keys/suggestion.hpp"
#include "model/model.hpp"
#include "strategy/strategy_config.hpp"
#include "study/measures.hpp"

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
    auto const input = usual_input(entry);
    auto const model = make_model(
        {.name = entry.name, .num_classes = input.is_text() ? input.vocabulary : 10}, input);
    table.add_row({entry.name, format_count(model.parameter_count()),
                   std::to_string(model.parameter_tensors()), std::to_string(model.blocks.size()),
                   input.is_text()            ? "-"
                   : entry.input_channels > 0 ? std::to_string(entry.input_channels)
                                              : "any",
                   input.is_text() ? "text" : std::to_string(entry.smallest_input),
                   entry.description});
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
                   entry.vocabulary > 0
                       ? str(entry.vocabulary, " tokens")
                       : str(entry.channels, " x ", entry.image_size, " x ", entry.image_size),
                   format_count(entry.vocabulary > 0 ? synthetic_train_tokens : entry.train_images),
                   format_count(entry.vocabulary > 0 ? synthetic_test_tokens : entry.test_images),
                   entry.folder.empty() ? "-" : entry.folder, entry.description});
  table.add_row({"your own", "any", "", "", "data.path",
                 "JPEG and PNG in folders or tar shards, HDF5 files, or text; see `help data`"});
  return table;
}

Table strategies() {
  Table table({{"strategy", Align::left}, {"", Align::left}});
  for (auto const& each : all_strategies())
    table.add_row({std::string(name_of(each)), std::string(description_of(each))});
  return table;
}

/// Of one section, or of all.
Table keys(std::string const& section) {
  Table table({{"key", Align::left},
               {"type", Align::left},
               {"default", Align::left},
               {"range", Align::left},
               {"of", Align::left},
               {"meaning", Align::left}});
  std::vector<std::string> sections;
  for (auto const& key : describe_keys(known_names())) {
    sections.push_back(section_of(key.path));
    bool const wanted = section.empty() || section == sections.back() || section == key.path;
    if (wanted)
      table.add_row({key.path, key.type, key.default_value + key.other_defaults, key.range,
                     join(key.owners, ", "), key.meaning});
  }
  if (!table.empty()) return table;
  sections.erase(std::ranges::unique(sections).begin(), sections.end());
  std::erase(sections, "");
  throw Error(ExitCode::usage,
              "no key is in \"" + section + "\"" + suggest_value(section, sections), {},
              "take one of " + join(sections, ", "));
}

Table measures_of_runs() {
  Table table({{"measure", Align::left}, {"unit", Align::left}, {"meaning", Align::left}});
  for (auto const& each : measures()) table.add_row({each.name, each.unit, each.meaning});
  return table;
}

Table listed(std::string const& what, std::string const& section) {
  if (what == "models") return models();
  if (what == "datasets") return datasets();
  if (what == "strategies") return strategies();
  if (what == "calibrations") return reference_calibrations();
  if (what == "measures") return measures_of_runs();
  return keys(section);
}

constexpr char schema_format[] = "json-schema";
constexpr int width_in_files = 160;  // of the keys, whose meanings are sentences

}  // namespace

void declare_list(Options& options) {
  options.add_word(
      {.name = "WHAT",
       .meaning = "what a configuration or `plan --calibration` can name, or what "
                  "`collect` tells of a run",
       .choices = {"models", "datasets", "strategies", "keys", "calibrations", "measures"}});
  options.add_word(
      {.name = "SECTION", .meaning = "of keys: those of this section alone", .required = false});
  auto formats = table_formats();
  formats.emplace_back(schema_format);
  options.add(
      {.name = "format",
       .value = "FORMAT",
       .choices = formats,
       .fallback = "text",
       .meaning =
           "of the table; json-schema, of keys, lets editors check configurations and studies"});
  options.add_example("stratagem list models", "their sizes, and which inputs they take");
  options.add_example("stratagem list keys strategy", "the keys of one section");
  options.add_example("stratagem list measures", "what `collect --format json` tells of each run");
  options.add_example("stratagem list keys --format json-schema > stratagem.schema.json",
                      "for an editor: `# yaml-language-server: $schema=stratagem.schema.json` as "
                      "the first line of a configuration");
}

ExitCode execute_list(Options const& options) {
  auto const& what = options.words().front();
  auto const section = options.words().size() > 1 ? options.words()[1] : std::string();
  if (!section.empty() && what != "keys")
    throw Error(ExitCode::usage,
                "stratagem list " + what + ": one word too many: \"" + section + "\"", {},
                "only keys have sections");
  auto const format = options.text("format");
  if (format == "text" && what == "keys" && terminal_columns(STDOUT_FILENO) == 0) {
    std::cout << listed(what, section).render_within(width_in_files);
  } else if (format != schema_format) {
    std::cout << listed(what, section).render(table_format(format));
  } else if (what == "keys" && section.empty()) {
    std::cout << json_schema(known_names());
  } else {
    throw Error(ExitCode::usage, "--format json-schema is of all keys", {},
                "write `stratagem list keys --format json-schema`");
  }
  return ExitCode::done;
}

}  // namespace stratagem::app
