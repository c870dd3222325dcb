#include <algorithm>
#include <filesystem>
#include <iostream>
#include <utility>

#include "app/commands/starter_config.hpp"
#include "app/commands/submit_line.hpp"
#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "data/dataset.hpp"
#include "model/exported/exported_model.hpp"
#include "model/model.hpp"
#include "strategy/strategy_config.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

/// About 64, so that the workers can share it.
int batch_of(Options const& options, std::string const& strategy, int ranks) {
  if (options.has("batch")) return static_cast<int>(options.integer("batch", 1, 1 << 24));
  int const workers = std::max(ranks - servers_of(strategy_named(strategy)), 1);
  return std::max(64 / workers, 1) * workers;
}

/// "net" of "models/net.pt2", "photos" of "data/photos/".
std::string last_name(std::string const& path) {
  auto const whole = (fs::absolute(path) / "").lexically_normal().parent_path();
  return whole.stem().string();
}

/// The data that were named, else generated images that the model can take.
void choose_data(Options const& options, Starter& starter) {
  if (!options.has("dataset")) {
    bool const colours = starter.model_file.empty()
                             ? find_model(starter.model).input_channels == 3
                             : exported_input(starter.model_file).channels == 3;
    starter.dataset = colours ? "synthetic-shapes" : "synthetic-digits";
    return;
  }
  starter.dataset = options.text("dataset");
  if (!is_path(starter.dataset)) return;
  starter.data_path = std::exchange(starter.dataset, last_name(starter.dataset));
  DataConfig const own{.dataset = starter.dataset, .path = starter.data_path};
  if (is_text(own)) {
    if (!options.has("model")) starter.model = "gpt2";
  } else {
    if (!options.has("model")) starter.model = "resnet50";
    if (starter.model_file.empty())
      starter.classes = std::max<std::int64_t>(whole_size(own).classes, 2);
  }
}

Starter starter_of(Options const& options) {
  Starter starter{.model = options.text("model"), .strategy = options.text("strategy")};
  if (is_path(starter.model)) {
    starter.model_file = std::exchange(starter.model, last_name(starter.model));
    starter.input_size = exported_input(starter.model_file).size;
  }
  choose_data(options, starter);
  if (options.has("ranks")) starter.ranks = static_cast<int>(options.integer("ranks", 1, 1 << 20));
  starter.global_batch = batch_of(options, starter.strategy, starter.ranks > 0 ? starter.ranks : 2);
  return starter;
}

/// As the file will be read: what cannot run is not written.
RunPlan plan_of(std::string const& text, std::string const& file, Starter const& starter) {
  auto const config = parse_config(text, file, {}, known_names(), process_variable);
  auto const model = make_model(config.model, input_shape(config));
  int const ranks = starter.ranks > 0 ? starter.ranks : least_ranks(config.strategy);
  return make_run_plan(config, model, known_size(config.data), ranks);
}

std::string next_steps(std::string const& file, RunPlan const& plan, Options const& options) {
  auto const launcher =
      plan.ranks > 1 ? str("mpirun --bind-to none -n ", plan.ranks, " ") : std::string();
  auto const& data = plan.config.data;
  auto const folder = data.path.empty() ? find_dataset(data.dataset).folder : std::string();
  auto text = str("wrote ", file, "; next:\n");
  if (!folder.empty() && data.root.empty())
    text += "  modules/fetch-data.sh DIR; export STRATAGEM_DATA=DIR    # the folder of " + folder +
            "\n";
  text += str("  stratagem plan ", file, "    # what it would do, and hold\n  ", launcher,
              "stratagem run ", file, "\n  stratagem collect ", plan.config.run.out,
              "    # the table of it\n");
  if (options.has("site"))
    text += str("  ", submit_line(options.text("site"), {plan}, file), "    # in place of run\n");
  return text;
}

}  // namespace

void declare_init(Options& options) {
  auto const names = known_names();
  std::vector<std::string> strategies;
  for (auto const& each : all_strategies()) strategies.emplace_back(name_of(each));
  options.add_word({.name = "FILE", .meaning = "the configuration to write, such as my.yaml"});
  options.add({.name = "model",
               .value = "NAME|FILE",
               .choices = names.models,
               .or_path = true,
               .fallback = "lenet",
               .meaning = "model to train, or a file of analysis/export_model.py"});
  options.add({.name = "dataset",
               .value = "NAME|DIR",
               .choices = names.datasets,
               .or_path = true,
               .meaning = "data set, or your own images or text, as data.path names them; default: "
                          "generated images that the model can take"});
  options.add({.name = "strategy",
               .value = "NAME",
               .choices = strategies,
               .fallback = "ddp",
               .meaning = "how the ranks share the work"});
  options.add(
      {.name = "ranks",
       .value = "N",
       .meaning = "number of ranks, servers included; default: as many as the launcher starts"});
  options.add({.name = "batch",
               .value = "N",
               .meaning = "samples per step of all ranks together; default: about 64"});
  options.add({.name = "site",
               .value = "SITE",
               .meaning = "also show the command that submits the run at slurm/sites/SITE.env"});
  options.add_example("stratagem init my.yaml --model resnet50 --dataset cifar10 --ranks 4",
                      "writes what `stratagem run my.yaml` can train with on four ranks");
}

ExitCode execute_init(Options const& options) {
  auto const& file = options.words().front();
  auto const starter = starter_of(options);
  auto const text = starter_config(starter, describe_keys(known_names()));
  auto const next = next_steps(file, plan_of(text, file, starter), options);
  if (fs::exists(fs::symlink_status(file)))
    throw Error(ExitCode::usage, file + " is there already", "nothing is overwritten",
                "name another file, or move that one away");
  replace_file(file, text);
  std::cout << next;
  return ExitCode::done;
}

}  // namespace stratagem::app
