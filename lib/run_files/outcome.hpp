#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/exit_code.hpp"

namespace stratagem {

/// `saved`: stopped before its end, to be continued with --resume.
enum class RunStatus { running, complete, saved, failed };

/// How a run stands or ended: the content of outcome.json, by which scripts and people detector it.
struct Outcome {
  RunStatus status = RunStatus::running;
  ExitCode code = ExitCode::done;
  std::string reason;  ///< "epochs done", "max_steps", "time_limit", "interrupted", or what failed
  int attempt = 0;
  std::int64_t started_wall_ns = 0;
  std::int64_t updated_wall_ns = 0;  ///< the heartbeat
  std::string host;
  std::int64_t process = 0;
  std::int64_t steps = 0;        ///< trained; while RUNNING, at the last heartbeat
  std::int64_t began_after = 0;  ///< the step of the checkpoint that this attempt resumed from
  int in_vain = 0;               ///< attempts in a row before it that began there and saved nothing
  std::string digest;            ///< of the final parameters; empty before
  double test_accuracy = 0;      ///< NaN when not evaluated
  double test_loss = 0;          ///< likewise
  double train_time_s = 0;       ///< without evaluation and saving
  double wall_time_s = 0;        ///< with them; of all attempts
  /// Of the time of the ranks' cores, the least share that nothing but the run used; NaN: unknown.
  double core_share = std::numeric_limits<double>::quiet_NaN();
  bool trace_complete = true;
};

/// How a process ends that a signal ends, as a shell tells it.
constexpr ExitCode code_of_signal(int signal) {
  return static_cast<ExitCode>(128 + signal);
}

std::string to_json(Outcome const& outcome);
/// Nothing when there is no such file. Error(io) when it is damaged.
std::optional<Outcome> read_outcome(std::filesystem::path const& run_directory);
void write_outcome(std::filesystem::path const& run_directory, Outcome const& outcome);

/// Keeps outcome.json at RUNNING, with a heartbeat every 10 s, until the end is known. Room for the
/// final content is reserved from the start, so that a full disk does not hide how the run ended.
class OutcomeKeeper {
 public:
  /// `steps`: as far as the run is; outlives this.
  OutcomeKeeper(std::filesystem::path run_directory, Outcome const& at_start,
                std::atomic<std::int64_t> const& steps);
  ~OutcomeKeeper();
  OutcomeKeeper(OutcomeKeeper const&) = delete;
  OutcomeKeeper& operator=(OutcomeKeeper const&) = delete;

  void finish(Outcome outcome);
  /// What is to be known of the run if its process is killed before finish().
  void foretell(Outcome outcome);
  /// No more beats, for somebody else knows the end.
  void stop();

 private:
  void beat();

  std::filesystem::path directory_;
  Outcome outcome_;
  std::atomic<std::int64_t> const& steps_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread heart_;
};

}  // namespace stratagem
