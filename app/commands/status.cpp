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

/// How one run stands.
ExitCode show_run(fs::path const& run, Options const& options) {
  auto const status = status_of_run(run);
  Table table({{"run", Align::left},
               {"state", Align::left},
               {"steps"},
               {"train s"},
               {"test %"},
               {"updated", Align::left},
               {"reason", Align::left}});
  auto const& outcome = status.outcome;
  table.add_row({run.string(), std::string(name_of(status.state)),
                 outcome ? format_count(outcome->steps) : "-",
                 format_number(outcome ? outcome->train_time_s : std::nan(""), 1),
                 format_number(outcome ? 100 * outcome->test_accuracy : std::nan(""), 2),
                 outcome ? utc_time(outcome->updated_wall_ns) : "-",
                 split(status.reason, '\n').front()});
  std::cout << table.render(table_format(options.text("format")));
  return code_of(status.state == CellState::complete, options);
}

}  // namespace

void declare_status(Options& options) {
  options.add_word({.name = "DIR", .meaning = "a study directory, or a run directory"});
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
  if (!StudyDirectory::is_one(directory) && is_run_directory(directory))
    return show_run(directory, options);
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
