#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "app/configuration.hpp"
#include "base/arithmetic.hpp"
#include "base/clock.hpp"
#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/files/free_name.hpp"
#include "base/files/time_name.hpp"
#include "base/text.hpp"
#include "model/model.hpp"
#include "plan/gpus_of_job.hpp"
#include "plan/run_plan.hpp"
#include "study/conclusion.hpp"
#include "study/held_signals.hpp"
#include "study/run_cell.hpp"
#include "study/run_facts.hpp"
#include "study/summary.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t usual_batch = 64;

/// Of section `strategy`, in the order in which they are set.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// The batch is the least that `ranks` can share, from the usual one on.
RunConfig configuration(std::string const& name, int ranks, std::int64_t epochs,
                        Settings const& settings) {
  RunConfig config;
  config.run = {.name = name, .threads = 1, .epochs = epochs};
  config.data = {.dataset = "synthetic-digits", .global_batch = round_up(usual_batch, ranks)};
  config.model.name = "lenet";
  config.trace.spans_every = 10;
  for (auto const& [path, text] : settings) {
    auto const keys = keys_of(config.strategy);
    auto const key = std::ranges::find(keys, path, &Key::path);
    ensures(key != keys.end() && !key->value.set({text}), "the demo sets what there is");
  }
  return config;
}

/// `round` counts from 1.
Cell make_cell(int index, int workers, std::int64_t round, RunConfig const& config) {
  auto const& name = config.run.name;
  Cell cell{.entry = {.index = index,
                      .name = round == 1 ? name : str(name, "-", round),
                      .group = name,
                      .part = "demo",
                      .variant = name,
                      .workers = workers,
                      .settings = "variant=" + name},
            .config = config};
  cell.config.run.name = cell.entry.name;
  describe(cell.entry, config);
  return cell;
}

/// Every strategy, on one rank where it is serial and on `ranks` otherwise. The same seed gives all
/// of them the same weights and the same batches. They take turns, so that whatever else the
/// machine does meets all of them.
Study comparison(int ranks, std::int64_t epochs, std::int64_t rounds) {
  auto const with = [&](std::string const& name, Settings const& settings) {
    return configuration(name, ranks, epochs, settings);
  };
  std::vector const configurations{
      with("serial", {{"name", "serial"}}),
      with("ddp-no-overlap", {{"name", "ddp"}, {"overlap", "false"}}),
      with("ddp", {{"name", "ddp"}}),
      with("fsdp", {{"name", "fsdp"}}),
      with("ps-sync", {{"name", "ps"}, {"chunk_mb", "0.5"}}),
  };
  Study study{.name = "demo", .file = {}, .text = {}, .overrides = {}, .cells = {}};
  for (std::int64_t round = 1; round <= rounds; ++round)
    for (auto const& config : configurations) {
      bool const alone = least_ranks(config.strategy) == 1;
      auto const index = static_cast<int>(study.cells.size());
      study.cells.push_back(make_cell(index, alone ? 1 : ranks, round, config));
    }
  return study;
}

/// What a run would be refused for, before the first begins.
void check_all(Study const& study) {
  for (auto const& cell : study.cells) {
    auto const& config = cell.config;
    auto const model = make_model(config.model, input_shape(config));
    make_run_plan(config, model, known_size(config.data), cell.entry.ranks());
  }
}

/// The folder of an earlier demo is continued; anything else is refused.
void check_folder(fs::path const& folder) {
  if (!fs::exists(folder) || StudyDirectory::is_one(folder)) return;
  throw Error(ExitCode::usage, folder.string() + " exists, and holds no demo", {},
              "name another folder with --out");
}

[[noreturn]] void fail(StudyDirectory const& directory, Cell const& cell, CellStart const& start,
                       CellRun const& run) {
  throw Error(run.status.code,
              str("the run ", cell.entry.name, " ended with code ", to_int(run.status.code)),
              "see above", "try `" + command_line(directory, cell, start) + "`");
}

/// Runs what is not complete. False when a signal ended it.
bool run_all(StudyDirectory const& directory, Study const& study, CellStart const& start,
             Log& log) {
  HeldSignals held;
  for (auto const& cell : study.cells) {
    auto const& name = cell.entry.name;
    if (is_complete(directory, cell)) {
      log.info(name + " is complete already");
      continue;
    }
    auto const run = run_cell(directory, cell, start);
    int const signal = run.signal != 0 ? run.signal : held.take();
    if (signal != 0) {
      log.warning(str("signal ", signal, " ended the demo in ", name, ", which is ",
                      name_of(run.status.state), "; `stratagem demo` with the same options and",
                      " --out ", directory.path().string(), " continues"));
      return false;
    }
    if (run.status.state != CellState::complete) fail(directory, cell, start, run);
  }
  return true;
}

std::string list_of(std::string const& title, std::vector<std::string> const& lines) {
  auto text = "\n" + title + ":\n";
  for (auto const& line : lines) text += "  " + line + "\n";
  return text;
}

/// The folder that holds report.py: of the source beside the build, or installed. Empty: neither.
fs::path report_script(fs::path const& program) {
  auto const above = program.parent_path().parent_path();
  for (auto const* place : {"analysis/report.py", "share/stratagem/analysis/report.py"})
    if (fs::exists(above / place)) return above / place;
  return {};
}

std::vector<std::string> next_commands(StudyDirectory const& directory, int ranks) {
  auto const program = fs::proximate(own_program());
  auto const config = directory.config_file("ddp").string();
  std::vector<std::string> lines;
  if (auto const script = report_script(own_program()); !script.empty())
    lines.push_back(str(fs::proximate(script).string(), " ", directory.path().string(),
                        "   # tables and figures of these runs"));
  lines.push_back(str(program.string(), " plan ", config, " --ranks ", std::max(ranks, 2),
                      " --compare -s model.name=vgg16 -s data.input_size=32",
                      "   # a larger model: what each would hold and send"));
  lines.push_back(str("mpirun --bind-to none -n ", ranks, " ", program.string(), " run ", config,
                      " --out runs/mine -s optimizer.lr=0.05   # a run of your own"));
  return lines;
}

/// The run of a cell, which has ended, with its ranks' traces joined.
ComparedRun joined(StudyDirectory const& directory, CellEntry const& cell) {
  auto const run = directory.run_directory(cell.name);
  auto const traces = trace::collect_run(run);
  trace::write_collected(traces, run / "collected.h5");
  auto const outcome = read_outcome(run);
  return {.summary = summarise(cell.name, traces, read_run_facts(run)),
          .digest = outcome ? outcome->digest : "",
          .of = cell.group,
          .core_share = outcome ? outcome->core_share : std::nan("")};
}

/// Tables are of the first round, conclusions of all.
void show(StudyDirectory const& directory, Study const& study, int ranks) {
  std::vector<RunSummary> first_round;
  std::vector<ComparedRun> compared;
  std::vector<std::string> folders;
  for (auto const& cell : study.cells) {
    compared.push_back(joined(directory, cell.entry));
    if (cell.entry.name != cell.entry.group) continue;
    first_round.push_back(compared.back().summary);
    folders.push_back((directory.run_directory(cell.entry.name) / "trace").string());
  }
  auto const rounds = compared.size() / first_round.size();
  std::cout << '\n'
            << (rounds > 1 ? str("the first of ", rounds, " rounds:\n") : "")
            << summary_text(first_round) << "\nmean over the steps of each rank\n"
            << phase_table(first_round).render() << list_of("traces", folders)
            << list_of("what this says", conclusions(compared))
            << list_of("next", next_commands(directory, ranks));
}

}  // namespace

void declare_demo(Options& options) {
  options.add({.name = "ranks",
               .value = "N",
               .fallback = "2",
               .meaning = "of the runs that are not serial"});
  options.add({.name = "epochs", .value = "N", .fallback = "2", .meaning = "of each run"});
  options.add({.name = "rounds",
               .value = "N",
               .fallback = "3",
               .meaning = "in which all strategies take turns; one round tells no difference from"
                          " chance"});
  options.add(
      {.name = "out",
       .value = "DIR",
       .meaning = "folder of the runs; default: runs/demo-<time>; an interrupted demo continues"});
  options.add({.name = "launcher",
               .value = "COMMAND",
               .fallback = "mpirun --bind-to none -n {ranks}",
               .meaning = "how to start several ranks"});
  options.add_example("stratagem demo", "needs neither data nor a GPU");
  options.add_example("stratagem demo --ranks 4 --epochs 1 --rounds 1 --out runs/demo4",
                      "a quick look, on four ranks");
}

ExitCode execute_demo(Options const& options) {
  if (auto const unused = unused_gpus(mpi::process_environment())) throw *unused;
  auto const common = options.common();
  auto const ranks = static_cast<int>(options.integer("ranks", 1, 64));
  CellStart start{.launcher = Launcher::parse(options.text("launcher")),
                  .passed_on = {"--progress", options.text("progress")},
                  .shows_output = true};
  if (common.level == LogLevel::warning) start.passed_on.emplace_back("-q");
  fs::path const folder = options.has("out") ? fs::path(options.text("out"))
                                             : free_name("runs/demo-" + time_name(wall_ns()));
  check_folder(folder);
  auto const study =
      comparison(ranks, options.integer("epochs", 1, 1000), options.integer("rounds", 1, 100));
  check_all(study);
  auto const directory = StudyDirectory::prepare(folder, study);
  Log log(0, true, common.level, common.color);
  if (!run_all(directory, study, start, log)) return ExitCode::saved;
  show(directory, study, ranks);
  return ExitCode::done;
}

}  // namespace stratagem::app
