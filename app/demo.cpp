#include <filesystem>
#include <iostream>

#include "app/configuration.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "config/print.hpp"
#include "study/launcher.hpp"
#include "study/summary.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

/// One run of the comparison.
struct Cell {
  std::string name;
  int ranks;
  RunConfig config;
};

RunConfig base_configuration(std::string const& name, std::int64_t epochs) {
  RunConfig config;
  config.run = {.name = name, .threads = 1, .epochs = epochs};
  config.data = {.dataset = "synthetic-digits", .global_batch = 64};
  config.model.name = "lenet";
  config.trace.spans_every = 10;
  return config;
}

/// Every strategy, on one rank where it is serial and on `ranks` otherwise. The same seed gives all
/// of them the same weights and the same batches.
std::vector<Cell> cells(int ranks, std::int64_t epochs) {
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
  return {{"serial", 1, serial},
          {"ddp-no-overlap", ranks, in_turn},
          {"ddp", ranks, ddp},
          {"fsdp", ranks, fsdp},
          {"ps-sync", ranks + 1, sync}};
}

void run_cell(Cell cell, fs::path const& folder, Launcher const& launcher,
              std::vector<std::string> const& common) {
  auto const file = folder / (cell.name + ".yaml");
  cell.config.run.out = (folder / cell.name).string();
  replace_file(file, print_config(cell.config));
  std::vector<std::string> arguments{"run", file.string()};
  arguments.insert(arguments.end(), common.begin(), common.end());
  int const code = launch(launcher, cell.ranks, own_program(), arguments);
  if (code != 0)
    throw Error(ExitCode::unexpected, str("the run ", cell.name, " ended with code ", code),
                "see above",
                "try `" + join(launcher.words, " ") + " " + own_program().string() + " " +
                    join(arguments, " ") + "`");
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
  fs::create_directories(folder);

  std::vector<std::string> passed_on{"--progress", options.text("progress")};
  if (common.level == LogLevel::warning) passed_on.emplace_back("-q");
  auto const all = cells(ranks, options.integer("epochs", 1, 1000));
  std::vector<RunSummary> summaries;
  PhaseTable phases;
  for (auto const& cell : all) {
    run_cell(cell, folder, launcher, passed_on);
    auto const traces = trace::collect_run(folder / cell.name);
    trace::write_collected(traces, folder / cell.name / "collected.h5");
    summaries.push_back(summarise(cell.name, traces));
    phases.add(cell.name, traces);
  }
  std::cout << '\n'
            << summary_text(summaries) << "\nmean over the steps of each rank\n"
            << phases.render() << "\ntraces:\n";
  for (auto const& cell : all) std::cout << "  " << (folder / cell.name / "trace").string() << '\n';
  return ExitCode::done;
}

}  // namespace stratagem::app
