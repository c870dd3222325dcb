#include "config/rules.hpp"

#include <filesystem>

#include "base/text.hpp"

namespace stratagem {

void derive_defaults(RunConfig& config, Given const& given, Environment const& environment) {
  auto& [run, expect, data, model, precision, optimizer, strategy, comm, trace, checkpoint,
         watchdog, integrity] = config;
  if (!model.file.empty()) {
    model.name = std::filesystem::path(model.file).stem().string();
    if (!given.has("model.num_classes")) model.num_classes = 0;
  }
  if (run.name.empty()) run.name = str(model.name, '-', name_of(strategy));
  if (run.out.empty()) run.out = "runs/" + run.name;
  if (!given.has("data.root")) data.root = environment("STRATAGEM_DATA").value_or("");
  derive_defaults(strategy, [&](std::string const& key) { return given.has("strategy." + key); });
  if (data.batch_per_worker > 0 && !given.has("data.global_batch")) data.global_batch = 0;
  // bf16 has the range of fp32: its loss is scaled only for those who ask for it.
  if (precision.compute == Precision::bf16 && !given.has("precision.loss_scale"))
    precision.loss_scale = LossScale::none;
}

void check_rules(RunConfig const& config, Given const& given, Problems& problems) {
  auto const refuse = [&](std::string const& path, std::string message) {
    problems.add(given.place_of(path), path, std::move(message));
  };
  auto const& data = config.data;
  if (data.global_batch > 0 && data.batch_per_worker > 0)
    refuse("data.batch_per_worker",
           str("is ", data.batch_per_worker, " while data.global_batch is ", data.global_batch,
               " (", given.place_of("data.global_batch").text, "); leave one out or set it to 0"));
  if (data.global_batch == 0 && data.batch_per_worker == 0)
    refuse("data.global_batch", "is 0 and so is data.batch_per_worker; one must be >= 1");
  if (auto const problem = contradiction_in(config.optimizer))
    refuse("optimizer." + problem->name, problem->message);
  auto const& model = config.model;
  if (!model.file.empty() && given.has("model.name"))
    refuse("model.name", str("is given, and so is model.file (", given.place_of("model.file").text,
                             "); leave one out"));
  if (model.num_classes == 0 && model.file.empty())
    refuse("model.num_classes", "is 0, which needs model.file; else it must be in [2, 65536]");
  if (config.model.head == HeadWeights::fresh && config.model.weights.empty())
    refuse("model.head", "is fresh, which needs model.weights");
}

}  // namespace stratagem
