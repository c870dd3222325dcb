#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/console/log.hpp"
#include "base/error.hpp"
#include "run_files/outcome.hpp"
#include "run_files/run_directory.hpp"
#include "trace/trace_file.hpp"
#include "train/reached.hpp"

namespace stratagem {

/// How a run ends, on one rank: its trace is closed and, where this rank tells of it, outcome.json
/// says how. The training does both, or a signal's thread just before the process dies; whoever is
/// first.
class RunEnd {
 public:
  /// `tells`: rank 0 does, from the start; others only of a failure of their own.
  RunEnd(RunDirectory const& directory, bool tells, Log& log);

  /// How far the attempts before this one came.
  void continue_after(std::int64_t step, int in_vain);
  /// Kept up to date by the training.
  Reached& reached() { return reached_; }
  /// outcome.json says RUNNING from now on. Error(io).
  void begin();
  void keep(std::unique_ptr<trace::TraceFile> file);

  /// The process may not live long: what was recorded goes to the file now.
  void flush();
  /// The same, done when this returns.
  void flush_now();
  /// What kept the trace from being complete, if anything did.
  std::optional<Error> close_trace(trace::Status status, trace::ClockSample const& clock);
  /// COMPLETE or SAVED. Error(io).
  void succeed(Outcome const& outcome);
  void fail(Error const& failure);
  /// The process may be killed before it has saved: what is then true is written now.
  void foretell(int signal);
  /// A checkpoint of `step` is whole. Rank 0; any thread.
  void saved(std::int64_t step);
  /// Both, within half a second. `cause`: what is wrong with other ranks, if that is known, or else
  /// what may be.
  void die_of(int signal, std::optional<Error> const& cause, std::string const& suspicion);
  /// Both, likewise, of what every rank knows: the first one tells.
  void die(Error const& failure, trace::Status status);

  /// As far as it is known from the start.
  Outcome const& outcome() const { return outcome_; }

 private:
  void die(Error const& failure, trace::Status status, bool tells);
  void die(Outcome const& outcome, trace::Status status, bool tells);
  void write(Outcome const& outcome);
  Outcome failed(ExitCode code, std::string const& reason) const;
  void write_foretold();
  /// Every step that was trained is in a checkpoint.
  bool is_saved() const { return reached_.saved > 0 && reached_.saved >= reached_.step; }
  /// If the process ends by it now.
  Outcome outcome_of(int signal) const;
  /// "ended by signal 15 (Terminated) after step 114; ...".
  std::string ended_by(int signal) const;
  /// A rank that knows why the run fails has said so, which is why this one is ended.
  bool another_told() const;

  RunDirectory directory_;
  bool tells_;
  Log& log_;
  Outcome outcome_;
  Reached reached_;
  std::timed_mutex mutex_;  ///< over all below
  bool known_ = false;      ///< outcome.json has its last word
  int foretold_ = 0;        ///< the signal that may be the end
  std::unique_ptr<OutcomeKeeper> keeper_;
  std::unique_ptr<trace::TraceFile> file_;  ///< until it is closed
};

}  // namespace stratagem
