#include "study/cell_status.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "config/print.hpp"
#include "run_files/run_owner.hpp"
#include "study/run_facts.hpp"

namespace stratagem {
namespace {

using nlohmann::json;

constexpr std::int64_t patience_ns = 60'000'000'000;  // six heartbeats

/// Why a run that claims to be running is not; empty if it is.
std::string why_lost(Outcome const& outcome) {
  if (outcome.host == host_name() && !owner_lives(outcome))
    return str("process ", outcome.process, " on ", outcome.host, " is gone");
  if (wall_ns() - outcome.updated_wall_ns < patience_ns) return {};
  return str("no sign of life from ", outcome.host, " since ", utc_time(outcome.updated_wall_ns));
}

void judge_by_outcome(CellStatus& status, Outcome const& outcome) {
  status.code = outcome.code;
  status.reason = outcome.reason;
  if (outcome.status == RunStatus::complete) {
    status.state = CellState::complete;
  } else if (outcome.status == RunStatus::running) {
    auto const lost = why_lost(outcome);
    status.state = lost.empty() ? CellState::running : CellState::lost;
    status.reason = lost.empty()
                        ? str("on ", outcome.host, " since ", utc_time(outcome.started_wall_ns))
                        : lost;
    if (!lost.empty()) status.code = ExitCode::peer_lost;
  } else {
    status.state = outcome.code == ExitCode::saved ? CellState::saved : CellState::failed;
  }
}

void judge_by_launch(CellStatus& status) {
  if (!status.launch) {
    status.reason = "not started";
    return;
  }
  if (status.launch->began && !status.outcome) {
    status.reason = "its run directory is gone";
    return;
  }
  status.state = CellState::failed;
  status.code = static_cast<ExitCode>(status.launch->exit_code);
  if (status.code == ExitCode::done) {
    status.code = ExitCode::peer_lost;
    status.reason = "the launcher ended with code 0, but no run began";
    return;
  }
  status.reason = status.launch->last_line.empty()
                      ? str("ended with code ", status.launch->exit_code, " without a word")
                      : status.launch->last_line;
}

/// By outcome.json alone.
CellStatus by_outcome(std::filesystem::path const& run) {
  CellStatus status;
  try {
    status.outcome = read_outcome(run);
  } catch (Error const& damaged) {
    status.state = CellState::failed;
    status.code = damaged.code();
    status.reason = damaged.what();
    return status;
  }
  if (status.outcome)
    judge_by_outcome(status, *status.outcome);
  else
    status.reason = "left no outcome.json";
  return status;
}

/// With what the launcher of a study's cell left. A start that failed before the run could say so
/// tells more than how an earlier one ended.
CellStatus by_launch(CellStatus status, std::filesystem::path const& launch_file) {
  status.launch = read_launch_record(launch_file);
  if (!status.outcome && status.state == CellState::failed) return status;  // a damaged file
  bool const is_old = status.outcome && status.outcome->status != RunStatus::complete &&
                      status.launch && status.launch->exit_code != 0 &&
                      status.outcome->updated_wall_ns < status.launch->started_wall_ns;
  if (!status.outcome || is_old) judge_by_launch(status);
  return status;
}

/// Those of a printed configuration that decide what a run computes, and its seed.
std::map<std::string, std::string> settings_in(std::string const& printed) {
  auto settings = values_in(printed);
  std::erase_if(settings, [](auto const& setting) {
    return !decides(setting.first) && setting.first != "run.seed";
  });
  return settings;
}

/// Keys that one of them does not know are another version's.
std::vector<std::string> differences(std::map<std::string, std::string> const& before,
                                     std::map<std::string, std::string> const& now) {
  std::vector<std::string> found;
  for (auto const& [key, value] : now)
    if (auto const was = before.find(key); was != before.end() && was->second != value)
      found.push_back(str(key, " was ", was->second, " and is ", value));
  return found;
}

}  // namespace

void write_launch_record(std::filesystem::path const& file, LaunchRecord const& record) {
  json const document{{"exit_code", record.exit_code},
                      {"began", record.began},
                      {"started", utc_time(record.started_wall_ns)},
                      {"started_wall_ns", record.started_wall_ns},
                      {"seconds", record.seconds},
                      {"host", record.host},
                      {"job", record.job},
                      {"last_line", record.last_line}};
  replace_file(file, document.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::optional<LaunchRecord> read_launch_record(std::filesystem::path const& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  try {
    auto const document = json::parse(read_text(file, ExitCode::io));
    return LaunchRecord{.exit_code = document.at("exit_code").get<int>(),
                        .began = document.value("began", false),
                        .started_wall_ns = document.at("started_wall_ns").get<std::int64_t>(),
                        .seconds = document.at("seconds").get<double>(),
                        .host = document.at("host").get<std::string>(),
                        .job = document.at("job").get<std::string>(),
                        .last_line = document.at("last_line").get<std::string>()};
  } catch (std::exception const&) {
    return std::nullopt;
  }
}

CellStatus status_of_run(std::filesystem::path const& run) {
  auto folder = std::filesystem::absolute(run).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  auto const study = folder.parent_path();
  if (!StudyDirectory::is_one(study)) return by_outcome(run);
  return status_of(StudyDirectory::open(study), folder.filename().string());
}

CellStatus status_of(StudyDirectory const& study, std::string const& cell) {
  return by_launch(by_outcome(study.run_directory(cell)), study.launch_file(cell));
}

bool is_complete(StudyDirectory const& study, Cell const& cell) {
  auto const& name = cell.entry.name;
  if (status_of(study, name).state != CellState::complete) return false;
  auto const file = study.run_directory(name) / "config.yaml";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return true;
  auto const different = differences(settings_in(read_text(file, ExitCode::io)),
                                     settings_in(print_config(cell.config)));
  if (different.empty()) return true;
  throw Error(ExitCode::usage,
              str(name, " in ", study.path().string(), " is complete, with other settings"),
              join(different, "; "), "name another folder with --out, or move that run away");
}

CellStatus once_ended(CellStatus status, int launcher_code) {
  bool const of_no_error = launcher_code == 0 || launcher_code > 128;
  if (status.code == ExitCode::unexpected && of_no_error) status.code = ExitCode::peer_lost;
  if (status.state != CellState::running && status.state != CellState::missing) return status;
  bool const began = status.state == CellState::running;
  status.state = began ? CellState::lost : CellState::failed;
  status.code =
      began || launcher_code == 0 ? ExitCode::peer_lost : static_cast<ExitCode>(launcher_code);
  status.reason = str("the launcher ended with code ", launcher_code, ", but the run did not end");
  return status;
}

std::string count_states(std::vector<CellStatus> const& cells) {
  std::vector<std::string> counts;
  for (std::size_t i = cell_state_names.size(); i-- > 0;) {
    auto const count = std::ranges::count(cells, static_cast<CellState>(i), &CellStatus::state);
    if (count > 0) counts.push_back(str(count, " ", cell_state_names[i]));
  }
  return str(cells.size(), cells.size() == 1 ? " cell: " : " cells: ", join(counts, ", "));
}

Table status_table(StudyDirectory const& study, std::vector<CellStatus> const& cells, bool all) {
  Table table({{"index"},
               {"cell", Align::left},
               {"ranks"},
               {"state", Align::left},
               {"seconds"},
               {"reason", Align::left}});
  for (std::size_t i = 0; i < cells.size(); ++i) {
    auto const& entry = study.cells()[i];
    auto const& status = cells[i];
    if (status.state == CellState::complete && !all) continue;
    auto const seconds = status.launch ? status.launch->seconds : std::nan("");
    table.add_row({std::to_string(entry.index), entry.name, std::to_string(entry.ranks()),
                   std::string(name_of(status.state)), format_number(seconds, 1),
                   split(status.reason, '\n').front()});
  }
  return table;
}

}  // namespace stratagem
