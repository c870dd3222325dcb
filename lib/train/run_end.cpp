#include "train/run_end.hpp"

#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "trace/records.hpp"

namespace stratagem {
namespace {

constexpr std::string_view ended_by_signal = "ended by signal ";

}  // namespace

RunEnd::RunEnd(RunDirectory const& directory, bool tells, Log& log)
    : directory_(directory),
      tells_(tells),
      log_(log),
      outcome_{.attempt = directory.attempt,
               .started_wall_ns = wall_ns(),
               .updated_wall_ns = wall_ns(),
               .host = host_name(),
               .process = ::getpid(),
               .test_accuracy = trace::unknown,
               .train_time_s = trace::unknown} {}

void RunEnd::continue_after(std::int64_t step, int in_vain) {
  outcome_.began_after = step;
  outcome_.in_vain = in_vain;
}

void RunEnd::begin() {
  if (tells_) keeper_ = std::make_unique<OutcomeKeeper>(directory_.path, outcome_);
}

void RunEnd::keep(std::unique_ptr<trace::TraceFile> file) {
  std::lock_guard const lock(mutex_);
  file_ = std::move(file);
}

void RunEnd::flush() {
  std::lock_guard const lock(mutex_);
  if (file_) file_->write_soon();
}

void RunEnd::flush_now() {
  std::lock_guard const lock(mutex_);
  if (file_) file_->write_now();
}

std::optional<Error> RunEnd::close_trace(trace::Status status, trace::ClockSample const& clock) {
  std::lock_guard const lock(mutex_);
  auto const file = std::exchange(file_, nullptr);
  return file ? file->close(status, clock) : std::nullopt;
}

void RunEnd::succeed(Outcome const& outcome) {
  std::lock_guard const lock(mutex_);
  known_ = true;
  keeper_->finish(outcome);
}

void RunEnd::fail(Error const& failure) {
  std::lock_guard const lock(mutex_);
  write_failure(failure.code(), failure.what());
}

void RunEnd::die_of(int signal, std::optional<Error> const& cause, std::string const& suspicion) {
  if (cause) return die(*cause, trace::Status::stopped, true);
  auto const ended = str(ended_by_signal, signal, " (", ::strsignal(signal), ")");
  if (suspicion.empty())
    die(Error(ExitCode::unexpected, ended), trace::Status::stopped, tells_);
  else
    die(Error(ExitCode::peer_lost, ended + "; " + suspicion), trace::Status::stopped, true);
}

void RunEnd::die(Error const& failure, trace::Status status) {
  die(failure, status, true);
}

void RunEnd::die(Error const& failure, trace::Status status, bool tells) {
  using namespace std::chrono_literals;
  std::unique_lock const lock(mutex_, 400ms);  // else somebody ends it properly just now
  if (!lock) return;
  if (keeper_) keeper_->stop();
  if (tells && !known_ && !another_told()) write_failure(failure.code(), failure.what());
  if (auto const file = std::exchange(file_, nullptr)) static_cast<void>(file->close(status, {}));
}

bool RunEnd::another_told() const {
  try {
    auto const found = read_outcome(directory_.path);
    return found && found->status == RunStatus::failed &&
           !found->reason.starts_with(ended_by_signal);
  } catch (Error const&) {
    return false;
  }
}

void RunEnd::write_failure(ExitCode code, std::string const& reason) {
  auto outcome = outcome_;
  outcome.status = RunStatus::failed;
  outcome.code = code;
  outcome.reason = reason;
  outcome.trace_complete = false;
  known_ = true;
  try {
    if (keeper_)
      keeper_->finish(outcome);
    else
      write_outcome(directory_.path, outcome);
  } catch (Error const& unwritten) {
    log_.warning(unwritten.what());
  }
}

}  // namespace stratagem
