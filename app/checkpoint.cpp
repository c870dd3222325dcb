#include "train/checkpoint/checkpoint.hpp"

#include <iostream>

#include "app/options.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

/// A run's checkpoints, or the one that `path` is.
std::vector<fs::path> checkpoints_at(fs::path const& path) {
  if (fs::exists(path / "manifest.json") && !fs::exists(path / "outcome.json")) return {path};
  return checkpoints_of(path);
}

/// What is wrong with it; nothing when every byte is as it was written.
std::string problem_of(Checkpoint const& checkpoint) {
  try {
    checkpoint.read([](StateName const&, at::Tensor const&) {});
    return {};
  } catch (Error const& error) {
    return error.what();
  }
}

/// Adds a row; false when the checkpoint is not whole.
bool add_row(Table& table, fs::path const& path, Log& log) {
  try {
    Checkpoint const checkpoint(path);
    auto const& record = checkpoint.record();
    auto const problem = problem_of(checkpoint);
    if (!problem.empty()) log.warning(problem);
    table.add_row({path.string(), format_count(record.position.step),
                   std::to_string(record.workers), std::to_string(record.files.size()),
                   format_bytes(static_cast<double>(record.bytes())),
                   utc_time(record.saved_wall_ns), problem.empty() ? "whole" : "DAMAGED"});
    return problem.empty();
  } catch (Error const& error) {
    log.warning(error.what());
    table.add_row({path.string(), "-", "-", "-", "-", "-", "DAMAGED"});
    return false;
  }
}

}  // namespace

ExitCode execute_checkpoint(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  options.add_positional("path", -1);
  options.add()("format", text_value("text"), "text, md, csv or latex");
  if (!options.parse(arguments)) return ExitCode::done;
  auto const paths = options.texts("path");
  if (paths.empty())
    throw Error(ExitCode::usage, "whose checkpoints?", {}, "name a run directory or a checkpoint");
  auto const format = table_format(options.text("format"));
  auto const common = options.common();
  Log log(0, true, common.level, common.color);
  Table table({{"checkpoint", Align::left},
               {"step"},
               {"workers"},
               {"files"},
               {"size"},
               {"saved", Align::left},
               {"state", Align::left}});
  int damaged = 0, all = 0;
  for (auto const& path : paths)
    for (auto const& checkpoint : checkpoints_at(path)) {
      ++all;
      if (!add_row(table, checkpoint, log)) ++damaged;
    }
  if (all == 0)
    throw Error(ExitCode::checkpoint, "no checkpoint in " + join(paths, ", "), {},
                "name a run directory that has a folder checkpoint/");
  std::cout << table.render(format);
  if (damaged == 0) return ExitCode::done;
  throw Error(ExitCode::checkpoint, str(damaged, " of ", all, " checkpoints are damaged"));
}

ExitCode execute_export_weights(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  options.add_positional("path", 2);
  if (!options.parse(arguments)) return ExitCode::done;
  auto const paths = options.texts("path");
  if (paths.size() != 2)
    throw Error(ExitCode::usage, "export what, and where to?", {},
                "stratagem export-weights " + command.usage);
  auto const& file = paths[1];
  if (fs::exists(file))
    throw Error(ExitCode::usage, file + " exists", {}, "name another file, or remove it");
  auto const common = options.common();
  Log log(0, true, common.level, common.color);
  auto const found = checkpoints_at(paths[0]);
  if (found.empty())
    throw Error(ExitCode::checkpoint, "no checkpoint in " + paths[0], {},
                "name a run directory or a checkpoint");
  bool const is_run = found.front() != fs::path(paths[0]);
  auto const checkpoint = is_run ? newest_checkpoint(paths[0], log) : Checkpoint(found.front());
  auto const weights = checkpoint->weights();
  write_safetensors(file, {weights.begin(), weights.end()});
  log.info(str(file, ": ", weights.size(), " tensors of step ",
               format_count(checkpoint->record().position.step), ", from ",
               checkpoint->folder().string()));
  return ExitCode::done;
}

}  // namespace stratagem::app
