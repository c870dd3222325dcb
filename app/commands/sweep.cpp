#include "study/sweep.hpp"

#include <algorithm>
#include <iostream>

#include <fnmatch.h>
#include <nlohmann/json.hpp>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "keys/variables.hpp"
#include "study/matrix.hpp"

namespace stratagem::app {
namespace {

Study read(Options const& options) {
  auto const& file = options.words().front();
  return read_study(read_file(file, FileKind::study), file, options.texts("set"), known_names(),
                    process_variable);
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

std::string cells_json(std::vector<CellEntry> const& entries) {
  auto cells = nlohmann::ordered_json::array();
  for (auto const& entry : entries)
    cells.push_back({{"index", entry.index},
                     {"cell", entry.name},
                     {"ranks", entry.ranks()},
                     {"model", entry.model},
                     {"dataset", entry.dataset},
                     {"variant", entry.variant},
                     {"workers", entry.workers},
                     {"global_batch", entry.global_batch},
                     {"seed", entry.seed}});
  return cells.dump(2) + "\n";
}

void print_list(std::vector<Cell> const& cells, std::string const& format) {
  std::vector<CellEntry> entries;
  for (auto const& cell : cells) entries.push_back(cell.entry);
  if (format == "csv") {
    std::cout << cells_csv(entries);
    return;
  }
  if (format == "json") {
    std::cout << cells_json(entries);
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

void declare_sweep(Options& options) {
  options.add_word(
      {.name = "STUDY", .meaning = "a YAML file, such as inputs/study/study-mini.yaml"});
  options.add({.name = "list", .meaning = "show the cells and end"});
  options.add({.name = "index",
               .value = "I",
               .meaning = "run this cell, as --list counts them: for arrays of jobs"});
  options.add(
      {.name = "all", .meaning = "run all cells that are not complete, one after the other"});
  options.add({.name = "prepare", .meaning = "make the study directory, for jobs that come later"});
  options.add({.name = "only",
               .value = "PATTERN",
               .repeats = true,
               .meaning = "of --list and --all: cells whose name matches, such as 'dp-*-s1'"});
  options.add(
      {.name = "out", .value = "DIR", .meaning = "study directory; else runs/<name of the study>"});
  add_overrides(options);
  options.add({.name = "launcher",
               .value = "COMMAND",
               .fallback = "mpirun --bind-to none -n {ranks}",
               .meaning = "how to start a cell's ranks"});
  auto formats = table_formats();
  formats.emplace_back("json");
  options.add({.name = "format",
               .value = "FORMAT",
               .choices = formats,
               .fallback = "text",
               .meaning = "of --list"});
  options.add_example("stratagem sweep inputs/study/study-mini.yaml --list",
                      "the cells of a study");
  options.add_example(
      "stratagem sweep inputs/study/study-mini.yaml --all",
      "run those that are not complete; repeat it to continue after an interruption");
  options.add_example("stratagem sweep inputs/study/study-mini.yaml --index 3 --out runs/mini",
                      "one cell, as a job of an array does");
}

ExitCode execute_sweep(Options const& options) {
  auto const common = options.common();
  if (options.flag("list") + options.has("index") + options.flag("all") + options.flag("prepare") !=
      1)
    throw Error(ExitCode::usage, "say what to do with the study", {},
                "take one of --list, --index I, --all and --prepare");
  auto const format = options.text("format");
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
