#pragma once

#include <atomic>
#include <cstdint>
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
  /// The training has stopped before its end, to be saved. Once it is, the run is SAVED, whatever
  /// happens to its ranks or their launcher before they have ended.
  void stop();
  void fail(Error const& failure);
  /// Any thread.
  bool stopped() const { return stopped_; }
  /// Every step that was trained is in a checkpoint. Any thread.
  bool is_saved() const { return reached_.saved > 0 && reached_.saved >= reached_.step; }
  /// The process may be killed before it has saved: what is then true is written now.
  void foretell(int signal);
  /// A checkpoint of `step` is whole. Any thread of a rank that knows it; rank 0 is the first.
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
  void write_foretold();
  void say_if_saved();
  /// And none was to follow.
  bool has_stopped() const { return is_saved() && (stopped_ || foretold_ != 0); }
  /// If the process ends by it now.
  Outcome outcome_of(int signal) const;
  Outcome outcome_of(Error const& failure) const;
  Outcome ended(RunStatus status, ExitCode code, std::string const& reason) const;
  /// "ended by signal 15 (Terminated) after step 114; ...".
  std::string ended_by(int signal) const;
  /// A rank that knows how the run ends has said so, which is why this one is ended.
  bool another_told() const;
  /// Rank 0 has told so, and this is another rank, which need not have heard of it.
  bool leader_has_saved() const;

  RunDirectory directory_;
  bool tells_;
  Log& log_;
  Outcome outcome_;
  Reached reached_;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> foretold_ = 0;  ///< the signal that may be the end
  std::timed_mutex mutex_;         ///< over all below
  bool known_ = false;             ///< outcome.json has its last word
  std::unique_ptr<OutcomeKeeper> keeper_;
  std::unique_ptr<trace::TraceFile> file_;  ///< until it is closed
};

}  // namespace stratagem
