#include "run_files/checkpoint.hpp"

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
  std::error_code closed;
  if (fs::exists(path / "manifest.json", closed) && !fs::exists(path / "outcome.json", closed))
    return {path};
  if (closed) throw Error(ExitCode::io, "cannot read " + path.string(), closed.message());
  return checkpoints_of(path);
}

/// The newest whole one of a run, or the one that `path` is.
Checkpoint checkpoint_at(fs::path const& path, Log& log) {
  auto const found = checkpoints_at(path);
  if (found.empty())
    throw Error(ExitCode::checkpoint, "no checkpoint in " + path.string(), {},
                "name a run directory or a checkpoint; runs keep their last step with "
                "checkpoint.at_end");
  if (found.front() == path) return Checkpoint(path);
  auto checkpoint = newest_checkpoint(path, log).value();
  warn_of_later_steps(path, checkpoint, log);
  return checkpoint;
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

void declare_checkpoint(Options& options) {
  options.add_word({.name = "DIR", .meaning = "a run directory or a checkpoint", .repeats = true});
  options.add({.name = "format",
               .value = "FORMAT",
               .choices = table_formats(),
               .fallback = "text",
               .meaning = "of the table"});
  options.add_example("stratagem checkpoint runs/digits-lenet-ddp",
                      "list its checkpoints, and read every byte of them");
}

ExitCode execute_checkpoint(Options const& options) {
  auto const& paths = options.words();
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

void declare_export_weights(Options& options) {
  options.add_word({.name = "CHECKPOINT|DIR", .meaning = "a checkpoint, or a run directory"});
  options.add_word({.name = "FILE", .meaning = "the safetensors file to write"});
  options.add_example("stratagem export-weights runs/digits-lenet-ddp lenet.safetensors",
                      "of the newest whole checkpoint");
}

ExitCode execute_export_weights(Options const& options) {
  auto const& paths = options.words();
  auto const& file = paths[1];
  if (fs::exists(file))
    throw Error(ExitCode::usage, file + " exists", {}, "name another file, or remove it");
  auto const common = options.common();
  Log log(0, true, common.level, common.color);
  auto const checkpoint = checkpoint_at(paths[0], log);
  auto const weights = checkpoint.weights();
  write_safetensors(file, {weights.begin(), weights.end()}, weights_metadata());
  log.info(str(file, ": ", weights.size(), " tensors of step ",
               format_count(checkpoint.record().position.step), ", from ",
               checkpoint.folder().string(), "; digest of the parameters ",
               checkpoint.digest_of(weights)));
  return ExitCode::done;
}

}  // namespace stratagem::app
