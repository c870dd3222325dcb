#include "study/run_cell.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "config/print.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> arguments_of(StudyDirectory const& study, Cell const& cell,
                                      CellStart const& start) {
  std::vector<std::string> arguments{"run", study.config_file(cell.entry.name).string(),
                                     "--resume"};
  arguments.insert(arguments.end(), start.passed_on.begin(), start.passed_on.end());
  return arguments;
}

/// The element of an array, or the job, or empty.
std::string slurm_job() {
  char const* const job = std::getenv("SLURM_JOB_ID");
  char const* const array = std::getenv("SLURM_ARRAY_JOB_ID");
  char const* const task = std::getenv("SLURM_ARRAY_TASK_ID");
  if (array != nullptr && task != nullptr) return str(array, "_", task);
  return job != nullptr ? job : "";
}

/// Rules and empty lines have none.
bool has_words(std::string_view line) {
  return std::ranges::any_of(line, [](unsigned char c) { return std::isalnum(c) != 0; });
}

/// The reason for the end in a log, from byte `begin` on: the first error, else the last line with
/// words.
std::string last_word(fs::path const& log, std::uintmax_t begin) {
  static constexpr std::string_view mark = "error: ";
  std::error_code ignored;
  if (!fs::is_regular_file(log, ignored)) return {};
  std::ifstream text(log);
  text.seekg(static_cast<std::streamoff>(begin));
  std::string last;
  for (std::string line; std::getline(text, line);) {
    if (auto const at = line.find(mark); at != std::string::npos && line.starts_with("stratagem"))
      return line.substr(at + mark.size());
    if (has_words(line)) last = trim(line);
  }
  return last;
}

}  // namespace

std::string command_line(StudyDirectory const& study, Cell const& cell, CellStart const& start) {
  return join(start.launcher.words_for(cell.entry.ranks()), " ") + " " + own_program().string() +
         " " + join(arguments_of(study, cell, start), " ");
}

CellRun run_cell(StudyDirectory const& study, Cell cell, CellStart const& start) {
  auto const& name = cell.entry.name;
  auto const log = start.shows_output ? fs::path{} : study.launch_log(name);
  cell.config.run.out = study.run_directory(name).string();
  replace_file(study.config_file(name), print_config(cell.config));
  std::error_code missing;
  auto const log_size = fs::file_size(log, missing);

  auto const begin = wall_ns();
  auto const ended = launch(start.launcher, cell.entry.ranks(), own_program(),
                            arguments_of(study, cell, start), log);
  CellRun run{.status = {},
              .seconds = static_cast<double>(wall_ns() - begin) * 1e-9,
              .signal = ended.signal};
  std::error_code unknown;
  write_launch_record(study.launch_file(name),
                      {.exit_code = ended.code,
                       .began = fs::exists(study.run_directory(name) / "outcome.json", unknown),
                       .started_wall_ns = begin,
                       .seconds = run.seconds,
                       .host = host_name(),
                       .job = slurm_job(),
                       .last_line = last_word(log, missing ? 0 : log_size)});
  run.status = once_ended(status_of(study, name), ended.code);
  if (ended.signal != 0 && run.status.state == CellState::lost)
    run.status.reason = str("signal ", ended.signal, " ended it before it had saved");
  return run;
}

}  // namespace stratagem
