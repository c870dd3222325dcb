#include <algorithm>
#include <filesystem>
#include <iostream>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "study/cell_status.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

void refuse_run_directory(std::string const& path) {
  if (StudyDirectory::is_one(path) || !is_run_directory(path)) return;
  auto const above = (fs::absolute(path) / "").lexically_normal().parent_path().parent_path();
  throw Error(
      ExitCode::usage, path + " is a run directory, not a study's", {},
      "`stratagem collect " + path + "` shows the run" +
          (StudyDirectory::is_one(above) ? ", `stratagem status " + above.string() + "` its study"
                                         : ""));
}

}  // namespace

void declare_status(Options& options) {
  options.add_word({.name = "DIR", .meaning = "a study directory"});
  options.add({.name = "all", .meaning = "show complete cells too"});
  options.add({.name = "check", .meaning = "end with code 8 unless all cells are complete"});
  options.add({.name = "format",
               .value = "FORMAT",
               .choices = table_formats(),
               .fallback = "text",
               .meaning = "of the table"});
  options.add_example("stratagem status runs/study-mini", "which cells are not complete, and why");
  options.add_example("stratagem status runs/study-mini --check",
                      "for scripts: code 8 unless all cells are complete");
}

ExitCode execute_status(Options const& options) {
  auto const format = table_format(options.text("format"));
  auto const& directory = options.words().front();
  refuse_run_directory(directory);
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
  return options.flag("check") && !complete ? ExitCode::cells_missing : ExitCode::done;
}

}  // namespace stratagem::app
