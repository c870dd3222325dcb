#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include <sys/types.h>

namespace stratagem {

/// Hears the signals by which schedulers and people end a run, on a thread of its own; no handler
/// interrupts anybody. While it lives:
///   USR1        asks to save and stop (Slurm before a time limit, mpirun passes it on)
///   INT         the first time the same, the second time ends the process
///   HUP         as USR1: the terminal is gone; not heard where it is ignored (nohup)
///   TERM        the same, for as long as there is time; then it ends the process
///   CONT        mpirun's first sign that the job is about to end: what is written is flushed
class SignalWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  /// What is done on the watch's thread. Each may be empty.
  struct Reactions {
    bool saves = true;                    ///< false: all but CONT end the process
    std::function<void()> interrupt;      ///< the run is to save and stop
    std::function<void()> flush;          ///< on CONT
    std::function<void()> end_is_near;    ///< on CONT from the launcher: TERM may follow
    std::function<void(int signal)> end;  ///< the process dies of the signal afterwards
    /// On TERM: false when it would be in vain to try to save. What is to be known of the run if
    /// it is killed meanwhile must be on the disk when this returns.
    std::function<bool(int signal)> tries_to_save;
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
  /// `grace`: from TERM to the end of an attempt to save, where the launcher does not show how long
  /// it waits. `reactions`: until a Scope has others.
  SignalWatch(Milliseconds grace, Reactions reactions);
  ~SignalWatch();
  SignalWatch(SignalWatch const&) = delete;
  SignalWatch& operator=(SignalWatch const&) = delete;

  /// Nothing is to be done any more but what a Scope asks for.
  void forget() { replace({}); }

  /// True once the run is to save and stop.
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }

 private:
  struct Deadline {
    int signal;
    Clock::time_point at;
  };

  Reactions replace(Reactions reactions);
  void run();
  /// For poll(); -1 while there is no deadline.
  int milliseconds_left() const;
  void hear(int signal, pid_t sender);
  void hear_continue(pid_t sender);
  void hear_terminate(pid_t sender);
  Milliseconds grace_after(pid_t sender) const;
  [[noreturn]] void end(int signal);

  Milliseconds grace_;
  sigset_t heard_{}, mask_before_{};
  int signals_ = -1, wake_ = -1;  ///< file descriptors
  std::atomic<bool> interrupted_ = false;
  std::mutex mutex_;
  Reactions reactions_;  ///< under mutex_
  // Of the thread.
  std::optional<Clock::time_point> continued_;  ///< by the launcher
  std::optional<Deadline> deadline_;
  std::thread thread_;
};

}  // namespace stratagem
