#include <algorithm>
#include <iostream>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "train/plan_report.hpp"

namespace stratagem::app {
namespace {

int ranks_of(Options const& options, RunConfig const& config) {
  if (options.has("ranks")) return static_cast<int>(options.integer("ranks", 1, 1 << 20));
  if (config.run.ranks > 0) return config.run.ranks;
  return std::holds_alternative<SerialConfig>(config.strategy) ? 1 : 2;
}

/// Of a parameter server, measured on this machine.
std::optional<ServerLoad> server_load_of(RunPlan const& plan) {
  auto const* ps = std::get_if<PsConfig>(&plan.config.strategy);
  if (ps == nullptr) return std::nullopt;
  auto const push_s = measure_push(policy_of(*ps, plan.strategy.workers), plan.config.optimizer,
                                   std::ranges::max(plan.strategy.servers->shards));
  return predict_load(plan.activations->pass_s, push_s, plan.strategy.workers, ps->servers);
}

}  // namespace

ExitCode execute_plan(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  add_configuration(options);
  options.add()("ranks", text_value(),
                "for so many ranks; else run.ranks, else 1 for serial and 2 for others")(
      "gpu-memory", text_value(),
      "memory of each rank, such as 80GiB: exit 4 when the run cannot fit")("json", flag_value(),
                                                                            "as JSON");
  if (!options.parse(arguments)) return ExitCode::done;
  auto const config = read_configuration(options);
  auto const model = make_model(config.model, input_shape(config));
  auto plan = make_run_plan(config, model, published_size(config.data), ranks_of(options, config));
  plan.activations = predict_activations(model, config.model, plan.input, config.precision.compute,
                                         plan.samples_per_pass, config.run.threads);
  plan.server_load = server_load_of(plan);
  auto const needed = plan.peak_bytes();
  auto const room = options.has("gpu-memory") ? options.bytes("gpu-memory") : needed;
  std::cout << (options.flag("json") ? plan_json(plan, model) : plan_text(plan, model));
  if (needed <= room) return ExitCode::done;
  throw Error(ExitCode::does_not_fit,
              str("each rank needs ", format_bytes(static_cast<double>(needed)), ", of which ",
                  format_bytes(static_cast<double>(plan.strategy.memory.total())),
                  " before any activation"),
              "--gpu-memory is " + options.text("gpu-memory"),
              "take a smaller batch or model, more ranks, model.recompute, or another strategy");
}

}  // namespace stratagem::app
