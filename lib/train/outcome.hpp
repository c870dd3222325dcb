#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/exit_code.hpp"

namespace stratagem {

/// `saved`: stopped before its end, to go on with --resume.
enum class RunStatus { running, complete, saved, failed };

/// How a run stands or ended: the content of outcome.json, by which scripts and people judge it.
struct Outcome {
  RunStatus status = RunStatus::running;
  ExitCode code = ExitCode::done;
  std::string reason;  ///< "epochs done", "max_steps", "time_limit", "interrupted", or what failed
  int attempt = 0;
  std::int64_t started_wall_ns = 0;
  std::int64_t updated_wall_ns = 0;  ///< the heartbeat
  std::string host;
  std::int64_t process = 0;
  std::int64_t steps = 0;
  std::int64_t began_after = 0;  ///< the step of the checkpoint that this attempt went on from
  int in_vain = 0;               ///< attempts in a row before it that began there and saved nothing
  std::string digest;            ///< of the final parameters; empty before
  double test_accuracy = 0;      ///< NaN when not evaluated
  double train_time_s = 0;
  bool trace_complete = true;
};

std::string to_json(Outcome const& outcome);
/// Nothing when there is no such file. Error(io) when it is damaged.
std::optional<Outcome> read_outcome(std::filesystem::path const& run_directory);
void write_outcome(std::filesystem::path const& run_directory, Outcome const& outcome);

/// Keeps outcome.json at RUNNING, with a heartbeat every 10 s, until the end is known. Room for the
/// final content is reserved from the start, so that a full disk does not hide how the run ended.
class OutcomeKeeper {
 public:
  OutcomeKeeper(std::filesystem::path run_directory, Outcome const& at_start);
  ~OutcomeKeeper();
  OutcomeKeeper(OutcomeKeeper const&) = delete;
  OutcomeKeeper& operator=(OutcomeKeeper const&) = delete;

  void finish(Outcome outcome);
  /// No more beats, for somebody else knows the end.
  void stop();

 private:
  void beat();

  std::filesystem::path directory_;
  Outcome outcome_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread heart_;
};

}  // namespace stratagem
