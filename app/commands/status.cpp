#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "app/configuration.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "study/cell_status.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

ExitCode code_of(bool complete, Options const& options) {
  return options.flag("check") && !complete ? ExitCode::cells_missing : ExitCode::done;
}

/// The run directories in a folder, by name.
std::vector<fs::path> runs_in(fs::path const& folder) {
  std::vector<fs::path> runs;
  std::error_code unreadable;
  for (auto const& entry : fs::directory_iterator(folder, unreadable))
    if (is_run_directory(entry.path())) runs.push_back(entry.path());
  std::ranges::sort(runs);
  return runs;
}

/// How runs stand, one row each.
ExitCode show_runs(std::vector<fs::path> const& runs, Options const& options) {
  Table table({{"run", Align::left},
               {"state", Align::left},
               {"steps"},
               {"train s"},
               {"test %"},
               {"updated", Align::left},
               {"reason", Align::left}});
  bool complete = true;
  for (auto const& run : runs) {
    auto const status = status_of_run(run);
    auto const& outcome = status.outcome;
    table.add_row({run.string(), std::string(name_of(status.state)),
                   outcome ? format_count(outcome->steps) : "-",
                   format_number(outcome ? outcome->train_time_s : std::nan(""), 1),
                   format_number(outcome ? 100 * outcome->test_accuracy : std::nan(""), 2),
                   outcome ? utc_time(outcome->updated_wall_ns) : "-",
                   split(status.reason, '\n').front()});
    complete = complete && status.state == CellState::complete;
  }
  std::cout << table.render(table_format(options.text("format")));
  return code_of(complete, options);
}

}  // namespace

void declare_status(Options& options) {
  options.add_word(
      {.name = "DIR", .meaning = "a study directory, a run directory, or a folder of runs"});
  options.add({.name = "all", .meaning = "show complete cells too"});
  options.add(
      {.name = "check", .meaning = "end with code 8 unless all cells, or the run, are complete"});
  options.add({.name = "format",
               .value = "FORMAT",
               .choices = table_formats(),
               .fallback = "text",
               .meaning = "of the table"});
  options.add_example("stratagem status runs/study-mini", "which cells are not complete, and why");
  options.add_example("stratagem status runs/study-mini --check",
                      "for scripts: code 8 unless all cells are complete");
  options.add_example("stratagem status runs/digits-lenet-ddp",
                      "whether a run is under way or has come to its end, and why");
}

ExitCode execute_status(Options const& options) {
  auto const format = table_format(options.text("format"));
  auto const& directory = options.words().front();
  if (!StudyDirectory::is_one(directory)) {
    if (is_run_directory(directory)) return show_runs({directory}, options);
    if (auto const runs = runs_in(directory); !runs.empty()) return show_runs(runs, options);
  }
  auto const study = StudyDirectory::open(directory);
  std::vector<CellStatus> cells;
  for (auto const& cell : study.cells()) cells.push_back(status_of(study, cell.name));
  auto const table = status_table(study, cells, options.flag("all"));
  if (format == TableFormat::text) {
    std::cout << count_states(cells) << "\n";
    if (!table.empty()) std::cout << "\n" << table.render();
  } else {
    std::cout << table.render(format);
  }
  bool const complete = std::ranges::all_of(
      cells, [](CellStatus const& cell) { return cell.state == CellState::complete; });
  return code_of(complete, options);
}

}  // namespace stratagem::app
