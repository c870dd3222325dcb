#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "comm/watchdog/failure_detector.hpp"
#include "comm/watchdog/slow_ranks.hpp"
#include "comm/watchdog/status_table.hpp"
#include "comm/watchdog/watchdog_config.hpp"
#include "trace/heartbeat_status.hpp"

namespace stratagem {

/// Why the job ends. All ranks of the node find this at about the same time.
struct Verdict {
  Error failure;       ///< stall or peer_lost; names the culprits
  bool speaks = true;  ///< this rank reports it
};

/// A thread that watches this rank and the others of its node: does one hang, was it stopped, is it
/// gone? It makes no MPI calls. If the job cannot continue without such a rank, it ends the
/// process, and the launcher then ends the job. A rank that the others do not need is reported
/// once, and so is a rank that stays much slower than the others.
///
/// Not taken for a hang: activities between steps, the first time of each phase, a process that is
/// held by a debugger, and a stop of the whole job.
class Watchdog {
 public:
  /// All are called on the watchdog's thread. When `end` returns, and after two seconds at the
  /// latest, the process ends.
  struct Reactions {
    std::function<void(Verdict const&)> end;
    std::function<void(std::string const&)> tell;  ///< on one rank, for people
    std::function<void(std::string const&)> mark;  ///< on the rank it concerns
    /// This rank stops and is about to save what it trained: it need not end with its launcher, and
    /// has half a minute for that. May be empty.
    std::function<bool()> saves = {};
  };

  struct Watched {
    bool vital = true;    ///< the others cannot continue without this rank
    bool on_gpu = false;  ///< its device may wait for others without the host's knowledge
  };
  /// `heartbeat` uses this rank's slot of `status_table`; both must outlive the watchdog.
  Watchdog(WatchdogConfig const& config, StatusTable const& status_table,
           trace::HeartbeatStatus const& heartbeat, Watched const& self, Reactions reactions);
  /// This rank is no longer watched.
  ~Watchdog();
  Watchdog(Watchdog const&) = delete;
  Watchdog& operator=(Watchdog const&) = delete;

  // For code that detects a failure in another way. Any thread.
  /// Why the job is about to end, as far as the ranks of this node know: a fault of one of them, or
  /// that its process is gone.
  std::optional<Error> known_failure() const;
  /// The previous node, if it has been silent for a second, which is not yet a failure. Empty
  /// otherwise, and on all ranks except the first of a node.
  std::string silent_node() const;
  /// This rank has reported everything and ends; the others need not report that it is gone.
  void has_spoken() { own().has_spoken = true; }
  /// Ranks that have been working for long without waiting for others; empty if there are none.
  std::string at_work() const;

 private:
  void run();
  void look(std::chrono::nanoseconds elapsed);
  std::optional<std::chrono::nanoseconds> own_limit() const;
  void publish(std::vector<FailureDetector::Accusation> const& accusations);
  /// Its launcher is gone, and it has nothing left to save.
  bool is_orphaned();
  /// Handles a finding: reports it, or ends the process.
  void act();
  void tell_of_slow(std::chrono::nanoseconds elapsed, std::span<Glance const> glances);
  [[noreturn]] void end();
  /// The first rank that ends makes the launcher end the others.
  void await_last_words();
  /// A stopped process cannot end itself.
  void end_stopped() const;
  bool fatal() const;
  /// The first rank without a fault.
  bool speaks() const;
  std::string describe(Slot const& slot, Finding finding) const;
  std::optional<ProcessState> process_of(std::size_t slot) const;
  Slot& own() const { return *slots_[own_]; }

  WatchdogConfig config_;
  std::vector<Slot*> slots_;
  std::size_t own_;
  trace::HeartbeatStatus const& heartbeat_;
  bool on_gpu_;
  Reactions reactions_;
  FailureDetector detector_;
  std::int64_t parent_;
  int fatal_looks_ = 0;  ///< in a row
  int looks_as_orphan_ = 0;
  std::set<std::size_t> told_;  ///< slots with a reported fault
  SlowRanks slow_ranks_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  ///< under mutex_
  std::thread thread_;
};

}  // namespace stratagem
