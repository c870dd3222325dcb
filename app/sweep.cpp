#include "study/sweep.hpp"

#include <algorithm>
#include <iostream>

#include <fnmatch.h>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "config/variables.hpp"
#include "study/matrix.hpp"

namespace stratagem::app {
namespace {

void declare(Options& options) {
  options.add_positional("study", 1);
  options.add()("list", flag_value(), "show the cells and end")(
      "index", text_value(), "run this cell, as --list counts them: for arrays of jobs")(
      "all", flag_value(), "run all cells that are not complete, one after the other")(
      "prepare", flag_value(), "make the study directory, for jobs that come later")(
      "only", texts_value(), "of --list and --all: cells whose name matches, such as 'dp-*-s1'")(
      "out", text_value(), "study directory; else runs/<name of the study>")(
      "set,s", texts_value(), "KEY=VALUE: replace a key in every cell")(
      "launcher", text_value("mpirun --bind-to none -n {ranks}"), "how to start a cell's ranks")(
      "format", text_value("text"), "of --list: text, md, csv or latex");
}

Study read(Options const& options) {
  auto const files = options.texts("study");
  if (files.empty())
    throw Error(ExitCode::usage, "STUDY is missing", {},
                "name a YAML file, such as inputs/study/study-mini.yaml");
  return read_study(read_text(files.front(), ExitCode::usage), files.front(), options.texts("set"),
                    known_names(), process_variable);
}

std::vector<Cell> chosen(Study const& study, std::vector<std::string> const& patterns) {
  auto const matches = [&](Cell const& cell) {
    return std::ranges::any_of(patterns, [&](std::string const& pattern) {
      return ::fnmatch(pattern.c_str(), cell.entry.name.c_str(), 0) == 0;
    });
  };
  std::vector<Cell> cells;
  for (auto const& cell : study.cells)
    if (patterns.empty() || matches(cell)) cells.push_back(cell);
  if (cells.empty())
    throw Error(ExitCode::usage, "no cell is called " + join(patterns, " or "), {},
                "see `stratagem sweep " + study.file + " --list`");
  return cells;
}

void print_list(std::vector<Cell> const& cells, std::string const& format) {
  std::vector<CellEntry> entries;
  for (auto const& cell : cells) entries.push_back(cell.entry);
  if (format == "csv") {
    std::cout << cells_csv(entries);
    return;
  }
  Table table({{"index"},
               {"cell", Align::left},
               {"ranks"},
               {"model", Align::left},
               {"dataset", Align::left},
               {"variant", Align::left},
               {"workers"},
               {"batch"},
               {"seed"}});
  for (auto const& entry : entries)
    table.add_row({std::to_string(entry.index), entry.name, std::to_string(entry.ranks()),
                   entry.model, entry.dataset, entry.variant, std::to_string(entry.workers),
                   std::to_string(entry.global_batch), std::to_string(entry.seed)});
  std::cout << table.render(table_format(format));
}

Cell const& cell_at(Study const& study, Options const& options) {
  auto const index = parse_integer(options.text("index"));
  auto const count = static_cast<std::int64_t>(study.cells.size());
  if (!index || *index < 0 || *index >= count)
    throw Error(ExitCode::usage, "--index " + options.text("index") + " is outside of the matrix",
                str("study ", study.name, " has cells 0 to ", count - 1),
                "see `stratagem sweep " + study.file + " --list`");
  return study.cells[static_cast<std::size_t>(*index)];
}

}  // namespace

ExitCode execute_sweep(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  declare(options);
  if (!options.parse(arguments)) return ExitCode::done;
  auto const common = options.common();
  if (options.flag("list") + options.has("index") + options.flag("all") + options.flag("prepare") !=
      1)
    throw Error(ExitCode::usage, "do what with the study?", {},
                "take one of --list, --index I, --all and --prepare");
  auto const format = options.text("format");
  static_cast<void>(table_format(format));
  auto const study = read(options);
  if (options.flag("list")) {
    print_list(chosen(study, options.texts("only")), format);
    return ExitCode::done;
  }
  CellStart const start{.launcher = Launcher::parse(options.text("launcher")),
                        .passed_on = {"--progress", "line"}};
  auto const one = options.has("index") ? &cell_at(study, options) : nullptr;
  auto const cells = one ? std::vector<Cell>{} : chosen(study, options.texts("only"));
  auto const directory = StudyDirectory::prepare(
      options.has("out") ? options.text("out") : "runs/" + study.name, study);
  if (options.flag("prepare")) return ExitCode::done;
  Log log(0, true, common.level, common.color);
  if (one) return sweep_one(directory, *one, start, log);
  return sweep_all(directory, cells, start, common.progress, log);
}

}  // namespace stratagem::app
