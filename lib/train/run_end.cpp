#include "train/run_end.hpp"

#include <chrono>
#include <csignal>
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

using namespace std::chrono_literals;

constexpr std::string_view ended_by_signal = "ended by signal ";

/// What a run loses that ends now.
std::string loss_of(std::int64_t step, std::int64_t saved) {
  if (step == 0) return " before the first step: nothing is lost";
  auto const here = str(" after step ", step);
  if (saved >= step) return here + ", which is saved; continue with --resume";
  auto const lost = str(step - saved, step - saved == 1 ? " step is lost" : " steps are lost");
  return str(here,
             saved > 0 ? str("; the newest checkpoint is of step ", saved, ": ")
                       : std::string("; nothing was saved: "),
             lost);
}

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
               .test_loss = trace::unknown,
               .train_time_s = trace::unknown} {}

void RunEnd::continue_after(std::int64_t step, int in_vain) {
  outcome_.began_after = step;
  outcome_.in_vain = in_vain;
  reached_.step = step;
  reached_.saved = step;
}

void RunEnd::begin() {
  if (tells_) keeper_ = std::make_unique<OutcomeKeeper>(directory_.path, outcome_, reached_.step);
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
  say_if_saved();
  std::lock_guard const lock(mutex_);
  if (!leader_has_saved()) write(outcome_of(failure));
}

void RunEnd::stop() {
  std::lock_guard const lock(mutex_);
  stopped_ = true;
  if (has_stopped()) write_foretold();
}

std::string RunEnd::ended_by(int signal) const {
  auto text = str(ended_by_signal, signal, " (", ::strsignal(signal), ")",
                  loss_of(reached_.step, reached_.saved));
  if (signal == SIGTERM && reached_.step > reached_.saved)
    text +=
        "; saving took longer than TERM leaves time for, and mpirun makes TERM of Ctrl-C: kill "
        "-USR1 <mpirun> saves and stops";
  return text;
}

void RunEnd::foretell(int signal) {
  std::unique_lock const lock(mutex_, 100ms);  // else somebody ends it properly just now
  if (!lock || known_ || !keeper_ || another_told()) return;
  foretold_ = signal;
  write_foretold();
  if (is_saved()) return;
  log_.warning(str("a signal (", ::strsignal(signal),
                   ") leaves little time: this run saves after this step; if it is killed before, ",
                   "it ends", loss_of(reached_.step, reached_.saved)));
}

void RunEnd::saved(std::int64_t step) {
  std::lock_guard const lock(mutex_);
  reached_.saved = step;
  if (foretold_ != 0 || has_stopped()) write_foretold();
}

Outcome RunEnd::outcome_of(int signal) const {
  if (is_saved()) return ended(RunStatus::saved, ExitCode::saved, "interrupted");
  return ended(RunStatus::failed, code_of_signal(signal), ended_by(signal));
}

Outcome RunEnd::outcome_of(Error const& failure) const {
  if (has_stopped()) return ended(RunStatus::saved, ExitCode::saved, "interrupted");
  return ended(RunStatus::failed, failure.code(), failure.what());
}

void RunEnd::say_if_saved() {
  if (tells_ && has_stopped())
    log_.info(str("the run ended", loss_of(reached_.step, reached_.saved)));
}

void RunEnd::write_foretold() {
  if (!keeper_ || known_) return;
  try {
    keeper_->foretell(outcome_of(foretold_));
  } catch (Error const&) {
    // There is room for the end itself.
  }
}

void RunEnd::die_of(int signal, std::optional<Error> const& cause, std::string const& suspicion) {
  if (cause) return die(*cause, trace::Status::stopped, true);
  auto const ended = ended_by(signal);
  if (!suspicion.empty())
    return die(Error(ExitCode::peer_lost, ended + "; " + suspicion), trace::Status::stopped, true);
  if (tells_ && !is_saved())
    log_.error(ended);
  else
    log_.info(ended);
  die(outcome_of(signal), trace::Status::stopped, tells_);
}

void RunEnd::die(Error const& failure, trace::Status status) {
  die(failure, status, true);
}

void RunEnd::die(Error const& failure, trace::Status status, bool tells) {
  say_if_saved();
  die(outcome_of(failure), has_stopped() ? trace::Status::stopped : status, tells);
}

void RunEnd::die(Outcome const& outcome, trace::Status status, bool tells) {
  std::unique_lock const lock(mutex_, 400ms);  // else somebody ends it properly just now
  if (!lock) return;
  if (keeper_) keeper_->stop();
  if (tells && !known_ && !another_told()) write(outcome);
  if (auto const file = std::exchange(file_, nullptr)) static_cast<void>(file->close(status, {}));
}

bool RunEnd::another_told() const {
  try {
    auto const found = read_outcome(directory_.path);
    if (!found) return false;
    return found->attempt > directory_.attempt ||  // somebody has gone on already
           (found->status == RunStatus::failed && !found->reason.starts_with(ended_by_signal)) ||
           leader_has_saved();
  } catch (Error const&) {
    return false;
  }
}

bool RunEnd::leader_has_saved() const {
  try {
    auto const found = tells_ ? std::nullopt : read_outcome(directory_.path);
    return found && found->status == RunStatus::saved && found->attempt == directory_.attempt;
  } catch (Error const&) {
    return false;
  }
}

Outcome RunEnd::ended(RunStatus status, ExitCode code, std::string const& reason) const {
  auto outcome = outcome_;
  outcome.status = status;
  outcome.code = code;
  outcome.reason = reason;
  outcome.steps = reached_.step;
  outcome.trace_complete = false;
  return outcome;
}

void RunEnd::write(Outcome const& outcome) {
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
