#include "run_files/outcome.hpp"

#include <chrono>
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char file_name[] = "outcome.json";
constexpr char reserve_name[] = ".outcome.reserve";
constexpr std::size_t reserve_bytes = 16384;

char const* name(RunStatus status) {
  switch (status) {
    case RunStatus::running:
      return "RUNNING";
    case RunStatus::complete:
      return "COMPLETE";
    case RunStatus::saved:
      return "SAVED";
    case RunStatus::failed:
      return "FAILED";
  }
  return "FAILED";
}

RunStatus status_named(std::string const& text) {
  if (text == "RUNNING") return RunStatus::running;
  if (text == "SAVED") return RunStatus::saved;
  return text == "COMPLETE" ? RunStatus::complete : RunStatus::failed;
}

std::string meaning_of(ExitCode code) {
  return to_int(code) > to_int(code_of_signal(0)) ? "ended by a signal"
                                                  : std::string(describe(code));
}

json number(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}

double number(json const& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

}  // namespace

std::string to_json(Outcome const& outcome) {
  json const document{
      {"status", name(outcome.status)},
      {"exit_code", to_int(outcome.code)},
      {"exit_code_meaning", meaning_of(outcome.code)},
      {"reason", outcome.reason},
      {"attempt", outcome.attempt},
      {"started", utc_time(outcome.started_wall_ns)},
      {"updated", utc_time(outcome.updated_wall_ns)},
      {"started_wall_ns", outcome.started_wall_ns},
      {"updated_wall_ns", outcome.updated_wall_ns},
      {"host", outcome.host},
      {"process", outcome.process},
      {"steps", outcome.steps},
      {"began_after", outcome.began_after},
      {"in_vain", outcome.in_vain},
      {"digest", outcome.digest},
      {"test_accuracy", number(outcome.test_accuracy)},
      {"test_loss", number(outcome.test_loss)},
      {"train_time_s", number(outcome.train_time_s)},
      {"wall_time_s", number(outcome.wall_time_s)},
      {"core_share", number(outcome.core_share)},
      {"trace_complete", outcome.trace_complete},
  };
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::optional<Outcome> read_outcome(fs::path const& run_directory) {
  auto const path = run_directory / file_name;
  std::error_code closed;
  if (!fs::exists(path, closed)) {
    if (closed) throw Error(ExitCode::io, "cannot read " + path.string(), closed.message());
    return std::nullopt;
  }
  try {
    auto const document = json::parse(read_text(path, ExitCode::io));
    return Outcome{.status = status_named(document.at("status").get<std::string>()),
                   .code = static_cast<ExitCode>(document.at("exit_code").get<int>()),
                   .reason = document.at("reason").get<std::string>(),
                   .attempt = document.at("attempt").get<int>(),
                   .started_wall_ns = document.at("started_wall_ns").get<std::int64_t>(),
                   .updated_wall_ns = document.at("updated_wall_ns").get<std::int64_t>(),
                   .host = document.at("host").get<std::string>(),
                   .process = document.at("process").get<std::int64_t>(),
                   .steps = document.at("steps").get<std::int64_t>(),
                   .began_after = document.value("began_after", std::int64_t{0}),
                   .in_vain = document.value("in_vain", 0),
                   .digest = document.at("digest").get<std::string>(),
                   .test_accuracy = number(document.at("test_accuracy")),
                   .test_loss = number(document.value("test_loss", json())),
                   .train_time_s = number(document.at("train_time_s")),
                   .wall_time_s = document.value("wall_time_s", 0.0),
                   .core_share = number(document.value("core_share", json())),
                   .trace_complete = document.at("trace_complete").get<bool>()};
  } catch (json::exception const&) {
    throw Error(ExitCode::io, path.string() + " is damaged",
                "it is no JSON, or lacks an entry that every run writes",
                "its checkpoints are as they were (stratagem checkpoint, export-weights); move the "
                "run directory aside to start anew");
  }
}

void write_outcome(fs::path const& run_directory, Outcome const& outcome) {
  replace_file(run_directory / file_name, to_json(outcome));
}

OutcomeKeeper::OutcomeKeeper(fs::path run_directory, Outcome const& at_start,
                             std::atomic<std::int64_t> const& steps)
    : directory_(std::move(run_directory)), outcome_(at_start), steps_(steps) {
  replace_file(directory_ / reserve_name, std::string(reserve_bytes, ' '));
  write_outcome(directory_, outcome_);
  heart_ = std::thread([this] { beat(); });
}

OutcomeKeeper::~OutcomeKeeper() {
  stop();
}

void OutcomeKeeper::beat() {
  name_thread("heartbeat");
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::seconds(10), [this] { return stopping_; })) {
    outcome_.updated_wall_ns = wall_ns();
    outcome_.steps = steps_;
    try {
      // Another rank may have told the end, while this process was stopped.
      if (auto const found = read_outcome(directory_); found && found->status != RunStatus::running)
        return;
      write_outcome(directory_, outcome_);
    } catch (Error const&) {
      // A missed beat is no reason to stop: the next may succeed, and the end has its own room.
    }
  }
}

void OutcomeKeeper::stop() {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (heart_.joinable()) heart_.join();
}

void OutcomeKeeper::foretell(Outcome outcome) {
  std::lock_guard const lock(mutex_);  // a beat would take it back
  outcome.updated_wall_ns = wall_ns();
  write_outcome(directory_, outcome);
}

void OutcomeKeeper::finish(Outcome outcome) {
  stop();
  std::error_code ignored;
  fs::remove(directory_ / reserve_name, ignored);
  outcome.updated_wall_ns = wall_ns();
  write_outcome(directory_, outcome);
}

}  // namespace stratagem
