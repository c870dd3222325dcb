#include <algorithm>
#include <iostream>

#include "app/configuration.hpp"
#include "app/plan_study.hpp"
#include "app/submit_line.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "train/plan_comparison.hpp"
#include "train/plan_report.hpp"
#include "train/step_time.hpp"

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

/// "" where no site is named.
std::string submission_of(RunPlan const& plan, Options const& options) {
  if (!options.has("site")) return {};
  auto const line = submit_line(options.text("site"), plan, options.texts("config").front());
  return "\nsubmit: " + line + "\n" +
         (options.texts("set").empty() ? "" : "        with what -s says in the file itself\n");
}

void declare(Options& options) {
  add_configuration(options);
  options.add()("ranks", text_value(),
                "for so many ranks; else run.ranks, else 1 for serial and 2 for others")(
      "gpu-memory", text_value(),
      "memory of each rank, such as 80GiB: exit 4 when the run cannot fit")(
      "compare", flag_value(),
      "all strategies side by side, for --ranks ranks that compute, and which one to take")(
      "calibration", text_value(),
      "what `stratagem calibrate` measured of a machine: predicts the time there too")(
      "site", text_value(), "show the command that submits the run at slurm/sites/SITE.env")(
      "no-activations", flag_value(), "leave out what takes seconds: running small passes")(
      "json", flag_value(), "as JSON");
}

/// 0 where it was not given.
std::int64_t room_of(Options const& options) {
  return options.has("gpu-memory") ? options.bytes("gpu-memory") : 0;
}

std::optional<Calibration> calibration_of(Options const& options) {
  if (!options.has("calibration")) return std::nullopt;
  return read_calibration(options.text("calibration"));
}

ExitCode plan_all(Options const& options, ActivationPredictor* predictor,
                  Calibration const* calibration) {
  for (auto const* other : {"compare", "ranks", "out", "max-steps", "site"})
    if (other == std::string_view("compare") ? options.flag(other) : options.has(other))
      throw Error(ExitCode::usage, str("--", other, " is for one run"),
                  options.texts("config").front() + " is a study", "change its cells with -s");
  auto const cells = cells_of(options.texts("config").front(), options.texts("set"));
  auto const common = options.common();
  if (predictor != nullptr && calibration == nullptr)
    Log(0, true, common.level, common.color)
        .info(
            "small passes of the models are run for what " + std::to_string(cells.size()) +
            " cells hold, up to a minute; a --calibration has them, --no-activations does without");
  auto const planned = plan_study(cells, predictor, calibration, room_of(options));
  std::cout << (options.flag("json") ? planned.json : planned.text);
  if (planned.refused == 0) return ExitCode::done;
  throw Error(ExitCode::usage, str(planned.refused, " of ", cells.size(), " cells cannot run"),
              "see the verdicts", "mend the study, or exclude them");
}

ExitCode compare(RunConfig const& config, Model const& model, int workers,
                 ActivationPredictor* predictor, Calibration const* calibration,
                 Options const& options) {
  auto const compared = compare_strategies(config, model, workers, predictor, calibration);
  auto const room = room_of(options);
  std::cout << (options.flag("json") ? comparison_json(compared, room)
                                     : comparison_text(compared, room));
  return recommended(compared, room) == nullptr ? ExitCode::does_not_fit : ExitCode::done;
}

void check_room(RunPlan const& plan, Options const& options) {
  auto const room = room_of(options);
  auto const needed = plan.peak_bytes();
  if (room == 0 || needed <= room) return;
  throw Error(ExitCode::does_not_fit,
              str("each rank needs ", format_bytes(static_cast<double>(needed)), ", of which ",
                  format_bytes(static_cast<double>(plan.strategy.memory.total())),
                  " before any activation"),
              "--gpu-memory is " + options.text("gpu-memory"),
              "take a smaller batch or model, more ranks, model.recompute, or another strategy "
              "(see --compare)");
}

}  // namespace

ExitCode execute_plan(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  declare(options);
  if (!options.parse(arguments)) return ExitCode::done;
  auto const measured = calibration_of(options);
  ActivationPredictor activations(measured ? measured->activations : ActivationPasses());
  auto* const predictor = options.flag("no-activations") ? nullptr : &activations;
  auto const* const calibration = measured ? &*measured : nullptr;
  auto const files = options.texts("config");
  if (!files.empty() && names_study(files.front()))
    return plan_all(options, predictor, calibration);
  auto const config = read_configuration(options);
  auto const model = make_model(config.model, input_shape(config));
  auto const ranks = ranks_of(options, config);
  if (options.flag("compare"))
    return compare(config, model, ranks, predictor, calibration, options);
  auto plan = make_run_plan(config, model, published_size(config.data), ranks);
  if (predictor != nullptr) {
    predict_activations(plan, model, *predictor);
    plan.server_load = server_load_of(plan);
  }
  if (calibration != nullptr) predict_time(plan, model, *calibration);
  auto const submission = submission_of(plan, options);
  std::cout << (options.flag("json") ? plan_json(plan, model)
                                     : plan_text(plan, model) + submission);
  check_room(plan, options);
  return ExitCode::done;
}

}  // namespace stratagem::app
