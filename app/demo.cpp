#include <filesystem>
#include <iostream>

#include "app/configuration.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "study/run_cell.hpp"
#include "study/summary.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

RunConfig base_configuration(std::string const& name, std::int64_t epochs) {
  RunConfig config;
  config.run = {.name = name, .threads = 1, .epochs = epochs};
  config.data = {.dataset = "synthetic-digits", .global_batch = 64};
  config.model.name = "lenet";
  config.trace.spans_every = 10;
  return config;
}

Cell make_cell(int index, int workers, RunConfig const& config) {
  auto const& name = config.run.name;
  Cell cell{.entry = {.index = index,
                      .name = name,
                      .group = name,
                      .part = "demo",
                      .variant = name,
                      .workers = workers,
                      .settings = "variant=" + name},
            .config = config};
  describe(cell.entry, config);
  return cell;
}

/// Every strategy, on one rank where it is serial and on `ranks` otherwise. The same seed gives all
/// of them the same weights and the same batches.
Study comparison(int ranks, std::int64_t epochs) {
  auto serial = base_configuration("serial", epochs);
  serial.strategy = SerialConfig{};
  auto in_turn = base_configuration("ddp-no-overlap", epochs);
  in_turn.strategy = DdpConfig{.overlap = false};
  auto ddp = base_configuration("ddp", epochs);
  ddp.strategy = DdpConfig{};
  auto fsdp = base_configuration("fsdp", epochs);
  fsdp.strategy = FsdpConfig{.unit_mb = 1.0 / 16};  // of a model of 3.6 MiB
  auto sync = base_configuration("ps-sync", epochs);
  sync.strategy = PsConfig{.chunk_mb = 0.5};
  Study study{.name = "demo", .file = {}, .text = {}, .overrides = {}, .cells = {}};
  for (auto const& config : {serial, in_turn, ddp, fsdp, sync}) {
    bool const alone = std::holds_alternative<SerialConfig>(config.strategy);
    auto const index = static_cast<int>(study.cells.size());
    study.cells.push_back(make_cell(index, alone ? 1 : ranks, config));
  }
  return study;
}

void run_or_throw(StudyDirectory const& directory, Cell const& cell, CellStart const& start) {
  auto const run = run_cell(directory, cell, start);
  if (run.status.state != CellState::complete)
    throw Error(ExitCode::unexpected,
                str("the run ", cell.entry.name, " ended with code ", to_int(run.status.code)),
                "see above", "try `" + command_line(directory, cell, start) + "`");
}

}  // namespace

ExitCode execute_demo(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  options.add()("ranks", text_value("2"), "of the runs that are not serial")(
      "epochs", text_value("2"), "of each run")("out", text_value(),
                                                "folder of the runs; else runs/demo-<time>")(
      "launcher", text_value("mpirun --bind-to none -n {ranks}"), "how to start several ranks");
  if (!options.parse(arguments)) return ExitCode::done;
  auto const common = options.common();
  auto const ranks = static_cast<int>(options.integer("ranks", 1, 64));
  auto const launcher = Launcher::parse(options.text("launcher"));
  fs::path const folder =
      options.has("out") ? options.text("out") : "runs/demo-" + utc_time(wall_ns());
  if (fs::exists(folder))
    throw Error(ExitCode::usage, folder.string() + " exists", {}, "name another folder with --out");

  CellStart start{.launcher = launcher,
                  .passed_on = {"--progress", options.text("progress")},
                  .shows_output = true};
  if (common.level == LogLevel::warning) start.passed_on.emplace_back("-q");
  auto const study = comparison(ranks, options.integer("epochs", 1, 1000));
  auto const directory = StudyDirectory::prepare(folder, study);
  std::vector<RunSummary> summaries;
  PhaseTable phases;
  for (auto const& cell : study.cells) {
    run_or_throw(directory, cell, start);
    auto const run = directory.run_directory(cell.entry.name);
    auto const traces = trace::collect_run(run);
    trace::write_collected(traces, run / "collected.h5");
    summaries.push_back(summarise(cell.entry.name, traces));
    phases.add(cell.entry.name, traces);
  }
  std::cout << '\n'
            << summary_text(summaries) << "\nmean over the steps of each rank\n"
            << phases.render() << "\ntraces:\n";
  for (auto const& cell : study.cells)
    std::cout << "  " << (directory.run_directory(cell.entry.name) / "trace").string() << '\n';
  return ExitCode::done;
}

}  // namespace stratagem::app
