#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

namespace stratagem {

/// Hears the signals by which schedulers and people end a run, on a thread of its own; no handler
/// interrupts anybody. While it lives:
///   USR1        asks to save and stop (Slurm before a time limit, mpirun passes it on)
///   INT         the first time the same, the second time ends the process
///   TERM        ends the process; the launcher's or scheduler's SIGKILL follows within a second
///   CONT        mpirun's first sign that the job is about to end: what is written is flushed
class SignalWatch {
 public:
  /// What is done on the watch's thread. Each may be empty.
  struct Reactions {
    bool saves = true;                    ///< false: USR1 and INT end the process
    std::function<void()> interrupt;      ///< the run is to save and stop
    std::function<void()> flush;          ///< on CONT
    std::function<void(int signal)> end;  ///< the process dies of the signal afterwards
    /// On TERM: true when there is time to save and stop, which the process then has 0.7 s for.
    std::function<bool()> time_to_save;
  };

  /// Reactions for a while; then those before them again.
  class Scope {
   public:
    Scope(SignalWatch& watch, Reactions reactions);
    ~Scope();
    Scope(Scope const&) = delete;
    Scope& operator=(Scope const&) = delete;

   private:
    SignalWatch& watch_;
    Reactions before_;
  };

  /// To be made before any other thread, which inherit that they do not receive these signals.
  SignalWatch();
  ~SignalWatch();
  SignalWatch(SignalWatch const&) = delete;
  SignalWatch& operator=(SignalWatch const&) = delete;

  /// True once the run is to save and stop.
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }

 private:
  Reactions replace(Reactions reactions);
  void run();
  void hear(int signal);
  [[noreturn]] void end(int signal);

  sigset_t heard_{}, mask_before_{};
  int signals_ = -1, wake_ = -1;  ///< file descriptors
  std::atomic<bool> interrupted_ = false;
  std::mutex mutex_;
  Reactions reactions_;  ///< under mutex_
  std::thread thread_;
};

}  // namespace stratagem
