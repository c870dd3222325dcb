#include <iostream>

#include "app/configuration.hpp"
#include "base/console/table.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/exported_model.hpp"
#include "model/exported/first_loss.hpp"
#include "model/exported/remarks.hpp"
#include "predict/block_costs.hpp"

namespace stratagem::app {
namespace {

ModelConfig model_of(std::string const& word) {
  if (!is_path(word)) {
    bool const text = find_model(word).takes_text;
    return {.name = word, .num_classes = text ? 0 : 10};
  }
  return {.name = std::filesystem::path(word).stem().string(), .file = word, .num_classes = 0};
}

InputShape shape_of(Options const& options, ModelConfig const& config) {
  InputShape shape;
  if (config.file.empty()) {
    shape = usual_input(find_model(config.name));
  } else {
    auto const input = exported_input(config.file);
    if (input.size == 0) refuse_input(config.file, input);
    shape = {.channels = input.channels, .size = input.size};
  }
  if (shape.is_text()) {
    if (options.has("input-size"))
      throw Error(ExitCode::usage, "--input-size is of images", str(config.name, " takes text"));
    return shape;
  }
  if (options.has("input-size")) shape.size = options.integer("input-size", 1, 4096);
  return shape;
}

/// `readable`: with marks for thousands.
Table table_of(std::vector<BlockCost> const& costs, bool readable) {
  Table table({{"block", Align::left},
               {"tensors"},
               {"parameters"},
               {"share %"},
               {"MFLOP/sample"},
               {"kept KiB/sample"}});
  BlockCost all{.name = "all"};
  for (auto const& cost : costs) {
    all.tensors += cost.tensors;
    all.parameters += cost.parameters;
    all.flops += cost.flops;
    all.kept += cost.kept;
  }
  auto const add = [&](BlockCost const& cost) {
    auto const share = static_cast<double>(cost.parameters) / static_cast<double>(all.parameters);
    table.add_row({cost.name, std::to_string(cost.tensors),
                   readable ? format_count(cost.parameters) : std::to_string(cost.parameters),
                   format_number(100 * share, 1), format_number(1e-6 * cost.flops, 2),
                   format_number(static_cast<double>(cost.kept) / 1024, 1)});
  };
  for (auto const& cost : costs) add(cost);
  add(all);
  return table;
}

std::string untrained_text(Untrained const& untrained, char const* what) {
  constexpr std::size_t shown = 5;
  auto const& names = untrained.names;
  if (names.empty()) return "";
  auto const first = std::span(names).first(std::min(shown, names.size()));
  return str(what, " (", format_count(untrained.elements), " parameters): ", join(first, ", "),
             names.size() > shown ? str(" and ", names.size() - shown, " more") : "", "\n\n");
}

std::string remarks_of(Model const& model) {
  auto const remarks = exported_remarks(model);
  auto const& [frozen, unreached, evaluation, by_batch] = remarks;
  return untrained_text(frozen, "frozen") +
         untrained_text(unreached, "not reached by a gradient, so not trained") +
         (evaluation.empty() ? "" : str("warning: ", evaluation, "\n\n")) +
         (by_batch.empty() ? "" : str("warning: ", by_batch, "\n\n"));
}

}  // namespace

void declare_model(Options& options) {
  options.add_word({.name = "MODEL|FILE",
                    .meaning = "a name of `stratagem list models`, or a file of "
                               "analysis/export_model.py"});
  options.add(
      {.name = "input-size",
       .value = "N",
       .meaning = "edge of the images [pixels]; default: 32, 224 of ViT-B and L, or the file's"});
  options.add({.name = "format",
               .value = "FORMAT",
               .choices = table_formats(),
               .fallback = "text",
               .meaning = "of the table"});
  options.add_example("stratagem model net.pt2", "whether the file can be trained, and its blocks");
  options.add_example("stratagem model resnet50 --input-size 224",
                      "what each block of a built-in model computes and keeps");
}

ExitCode execute_model(Options const& options) {
  auto const config = model_of(options.words().front());
  auto const shape = shape_of(options, config);
  auto const model = make_model(config, shape);
  if (!config.file.empty()) check_first_loss(config, model, shape);
  auto const costs = block_costs(model, config, shape);
  auto const format = options.text("format");
  if (format == "text")
    std::cout << model.name << ": " << parameters_text(model) << ", " << model.blocks.size()
              << " blocks, " << model.classes
              << (shape.is_text() ? str(" tokens, sequences of ", shape.tokens)
                                  : str(" classes, images of ", shape.channels, " x ", shape.size,
                                        " x ", shape.size))
              << (model.graph.empty() ? "" : ", graph " + model.graph) << "\n\n";
  if (format == "text") std::cout << remarks_of(model);
  if (format == "text")
    for (auto const& [name, first] : model.tied)
      std::cout << name << " is tied to " << first << ", under which it is saved\n\n";
  std::cout << table_of(costs, format != "csv").render(table_format(format));
  return ExitCode::done;
}

}  // namespace stratagem::app
