#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "app/calibrations.hpp"
#include "app/commands/plan_study.hpp"
#include "app/commands/submit_line.hpp"
#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "predict/code_comparison.hpp"
#include "predict/link.hpp"
#include "predict/plan_comparison.hpp"
#include "predict/reports/comparison_report.hpp"
#include "predict/reports/plan_report.hpp"
#include "predict/room.hpp"
#include "predict/time/step_costs.hpp"
#include "predict/time/step_time.hpp"
#include "strategy/server_work.hpp"

namespace stratagem::app {
namespace {

int ranks_of(Options const& options, RunConfig const& config) {
  if (options.has("ranks")) return static_cast<int>(options.integer("ranks", 1, 1 << 20));
  if (config.run.ranks > 0) return config.run.ranks;
  return least_ranks(config.strategy);
}

/// Of a parameter server: as the calibration has it where the plan has a time, else measured on
/// this machine.
std::optional<ServerLoad> server_load_of(Forecast const& forecast, Model const& model,
                                         Calibration const* calibration) {
  auto const& plan = forecast.plan;
  int const servers = plan.strategy.placement.servers();
  if (servers == 0) return std::nullopt;
  auto const shard = plan.strategy.servers.elements;
  auto const& compression = *compression_of(plan.config.strategy);
  auto const load = [&](double pass_s, double push_s) {
    return predict_load(pass_s, push_s, plan.strategy.shares.workers, servers);
  };
  if (forecast.time) {
    auto const costs = step_costs(plan, model, *calibration);
    auto const reading =
        costs.codec(compression).decode * static_cast<double>(shard * plan.strategy.element_size);
    return load(costs.forward_s + costs.backward_s,
                costs.push.at(static_cast<double>(shard)) + reading);
  }
  auto const& config = plan.config;
  return load(
      ActivationPredictor::time_pass(model, config.model, plan.input, config.precision.compute,
                                     plan.samples_per_pass, config.run.threads),
      time_push(plan.strategy.servers.work, config.optimizer, shard, compression));
}

/// "" where no site is named.
std::string submission_of(Forecast const& forecast, Options const& options) {
  if (!options.has("site")) return {};
  auto const line = submit_line(options.text("site"), forecast, options.words().front());
  return "\nsubmit: " + line + "\n" +
         (options.texts("set").empty() && !options.has("max-steps") && !options.has("out")
              ? ""
              : "        with what -s, --max-steps and --out say in the file itself\n");
}

Room room_of(Options const& options) {
  Room room{.reserve = options.bytes("gpu-reserve")};
  if (options.has("gpu-memory")) room.bytes = options.bytes("gpu-memory");
  return room;
}

std::optional<Calibration> calibration_of(Options const& options) {
  std::optional<Link> link;
  if (options.has("link")) link = parse_link(options.text("link"));
  if (options.has("calibration")) {
    auto calibration = find_calibration(options.text("calibration"));
    calibration.link = link;
    return calibration;
  }
  if (!link) return std::nullopt;
  throw Error(ExitCode::usage, "--link says nothing alone",
              "the time of passes is known from a calibration only", "give --calibration, too");
}

ExitCode plan_all(Options const& options, Room const& room, ActivationPredictor* predictor,
                  Calibration const* calibration) {
  for (auto const* other : {"compare", "ranks", "out", "max-steps", "site"})
    if (other == std::string_view("compare") ? options.flag(other) : options.has(other))
      throw Error(ExitCode::usage, str("--", other, " is for one run"),
                  options.words().front() + " is a study", "change its cells with -s");
  auto const cells = cells_of(options.words().front(), options.texts("set"));
  auto const common = options.common();
  if (predictor != nullptr && calibration == nullptr)
    Log(0, true, common.level, common.color)
        .info(
            "small passes of the models are run for what " + std::to_string(cells.size()) +
            " cells hold, up to a minute; a --calibration has them, --no-activations does without");
  auto const planned = plan_study(cells, predictor, calibration, room);
  std::cout << (options.flag("json") ? planned.json : planned.text);
  if (planned.refused == 0) return ExitCode::done;
  throw Error(ExitCode::usage, str(planned.refused, " of ", cells.size(), " cells cannot run"),
              "see the verdicts", "correct the study, or exclude them");
}

ExitCode compare(RunConfig const& config, Model const& model, int workers,
                 ActivationPredictor* predictor, Calibration const* calibration, Room const& room,
                 bool as_json) {
  auto const compared = compare_strategies(config, model, workers, predictor, room, calibration);
  std::cout << (as_json ? comparison_json(compared, room) : comparison_text(compared, room));
  return any_fits(compared, room) ? ExitCode::done : ExitCode::does_not_fit;
}

void check_room(Forecast const& forecast, Room const& room) {
  auto const needed = forecast.peak_bytes();
  if (room.fits(needed)) return;
  auto const bytes = [](std::int64_t value) { return format_bytes(static_cast<double>(value)); };
  throw Error(ExitCode::does_not_fit,
              str("each rank needs ", bytes(needed), ", of which ",
                  bytes(forecast.plan.strategy.memory.total()), " before any activation"),
              str("--gpu-memory is ", bytes(room.bytes), ", less --gpu-reserve ",
                  bytes(room.reserve), ": it ", room.verdict(needed)),
              "see --compare, which says what fits: another strategy, more micro_batches, "
              "model.recompute, more ranks or, last, a smaller batch");
}

/// While it lives: after two seconds it says why there is no answer yet.
class Notice {
 public:
  explicit Notice(CommonOptions const& common)
      : log_(0, true, common.level, common.color),
        waits_([this](std::stop_token const& stop) { wait(stop); }) {}

 private:
  void wait(std::stop_token const& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait_for(lock, stop, std::chrono::seconds(2), [] { return false; });
    if (!stop.stop_requested())
      log_.info(
          "small passes of the model are run, for what it will hold; --no-activations does "
          "without");
  }

  Log log_;
  std::jthread waits_;
};

ActivationPredictor predictor_for(Calibration const& machine) {
  return ActivationPredictor(machine.activations, ActivationPredictor::Machine::another,
                             machine.on_gpu ? gpu::DeviceKind::cuda : gpu::DeviceKind::cpu);
}

}  // namespace

void declare_plan(Options& options) {
  options.add_word({.name = "CONFIG|STUDY", .meaning = config_or_study});
  add_run_overrides(options);
  options.add(
      {.name = "ranks",
       .value = "N",
       .meaning = "number of ranks; default: run.ranks, else 1 for serial and 2 for others"});
  options.add({.name = "gpu-memory",
               .value = "SIZE",
               .meaning = "memory of each rank's GPU, such as 80GiB: exit 4 when the run cannot "
                          "fit"});
  options.add({.name = "gpu-reserve",
               .value = "SIZE",
               .fallback = "1GiB",
               .meaning = "part of it reserved for context, libraries and communicator"});
  options.add({.name = "compare",
               .meaning = "all strategies side by side, for --ranks ranks that compute, and which "
                          "one to take"});
  options.add({.name = "calibration",
               .value = "FILE|NAME",
               .meaning = "also predict times: a file of `stratagem calibrate`, or a name from "
                          "`stratagem list calibrations`"});
  options.add({.name = "link",
               .value = "RATE[,LATENCY]",
               .meaning = "with a calibration: as if such a link, like 1gbit,50us, connected each "
                          "rank with the others"});
  options.add({.name = "site",
               .value = "SITE",
               .meaning = "show the command that submits the run at slurm/sites/SITE.env"});
  options.add(
      {.name = "no-activations", .meaning = "do not run small passes, which takes seconds"});
  options.add({.name = "json", .meaning = "as JSON"});
  options.add_example("stratagem plan inputs/smoke/cifar-vgg16-ddp.yaml --ranks 4",
                      "bytes, buckets and traffic of four ranks");
  options.add_example(
      "stratagem plan inputs/smoke/cifar-vgg16-ddp.yaml --ranks 4 --compare --gpu-memory 24GiB",
      "all strategies side by side: which of them fit, and which to take");
  options.add_example("stratagem plan inputs/study/study-mini.yaml --calibration calibration.json",
                      "every cell of a study, with its time on the machine that was measured");
}

ExitCode execute_plan(Options const& options) {
  auto const room = room_of(options);
  auto const measured = calibration_of(options);
  auto activations = measured ? predictor_for(*measured) : ActivationPredictor();
  auto* const predictor = options.flag("no-activations") ? nullptr : &activations;
  auto const* const calibration = measured ? &*measured : nullptr;
  if (names_study(options.words().front())) return plan_all(options, room, predictor, calibration);
  auto const config = read_configuration(options);
  auto const model = make_model(config.model, input_shape(config));
  auto const ranks = ranks_of(options, config);
  std::optional<Notice> notice;
  if (predictor != nullptr) notice.emplace(options.common());
  if (options.flag("compare"))
    return compare(config, model, ranks, predictor, calibration, room, options.flag("json"));
  Forecast forecast{make_run_plan(config, model, known_size(config.data), ranks)};
  if (needs_labels(forecast.plan)) {
    auto const dataset = load_dataset(config.data);
    forecast.plan = with_labels(with_images(forecast.plan, dataset.size()), dataset.train);
  }
  if (predictor != nullptr) predict_activations(forecast, model, *predictor);
  if (calibration != nullptr) predict_time(forecast, model, *calibration);
  if (forecast.time) forecast.codes = compare_codes(forecast.plan, model, *calibration);
  if (predictor != nullptr) forecast.server_load = server_load_of(forecast, model, calibration);
  auto const submission = submission_of(forecast, options);
  std::cout << (options.flag("json") ? plan_json(forecast, model, room)
                                     : plan_text(forecast, model, room) + submission);
  check_room(forecast, room);
  return ExitCode::done;
}

}  // namespace stratagem::app
