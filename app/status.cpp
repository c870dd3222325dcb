#include <iostream>

#include "app/options.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "study/cell_status.hpp"

namespace stratagem::app {

ExitCode execute_status(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  options.add_positional("directory", 1);
  options.add()("all", flag_value(), "show complete cells too")(
      "format", text_value("text"), "of the table: text, md, csv or latex");
  if (!options.parse(arguments)) return ExitCode::done;
  auto const format = table_format(options.text("format"));
  auto const directories = options.texts("directory");
  if (directories.empty())
    throw Error(ExitCode::usage, "status of what?", {}, "name a study directory");
  auto const study = StudyDirectory::open(directories.front());
  std::vector<CellStatus> cells;
  for (auto const& cell : study.cells()) cells.push_back(status_of(study, cell.name));
  auto const table = status_table(study, cells, options.flag("all"));
  if (format == TableFormat::text) {
    std::cout << count_states(cells) << "\n";
    if (!table.empty()) std::cout << "\n" << table.render();
  } else {
    std::cout << table.render(format);
  }
  return ExitCode::done;
}

}  // namespace stratagem::app
