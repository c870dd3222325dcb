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
#include "comm/watchdog/board.hpp"
#include "comm/watchdog/judge.hpp"
#include "comm/watchdog/watchdog_config.hpp"
#include "trace/beacon.hpp"

namespace stratagem {

/// Why a job is over, as each of its ranks on this node finds at about the same time.
struct Verdict {
  Error failure;       ///< stall or peer_lost; names the culprits
  bool speaks = true;  ///< this rank is the one to tell it
};

/// A thread that watches over this rank and the others of its node: who hangs, who was stopped, who
/// is gone. It makes no call of MPI. Where the job cannot go on without such a rank it ends the
/// process, which the launcher takes for the end of the job; one that the others can do without is
/// told of, once, and so is one that is much slower than the others.
///
/// Not taken for a hang: what lies around steps, the first of each phase, a process that a debugger
/// holds, and a stop of the whole job.
class Watchdog {
 public:
  /// All are called on the watchdog's thread.
  struct Reactions {
    std::function<void(Verdict const&)> end;  ///< the process ends afterwards, or two seconds later
    std::function<void(std::string const&)> tell;  ///< on one rank, for people
    std::function<void(std::string const&)> mark;  ///< on the rank that it is about
  };

  struct Watched {
    bool vital = true;    ///< the others cannot go on without this rank
    bool on_gpu = false;  ///< its device may wait for others where the host does not say so
  };
  /// `beacon` shows at this rank's slot of `board`; both outlive the watchdog.
  Watchdog(WatchdogConfig const& config, Board const& board, trace::Beacon const& beacon,
           Watched const& self, Reactions reactions);
  /// This rank is watched no longer.
  ~Watchdog();
  Watchdog(Watchdog const&) = delete;
  Watchdog& operator=(Watchdog const&) = delete;

  // For those who find that something is wrong by other means. Any thread.
  /// Why the job is about to end, as far as this node's ranks know: what is wrong with one of them,
  /// or that its process is no more.
  std::optional<Error> known_failure() const;
  /// Names the node before this one where it has been silent for a second, which is no failure yet;
  /// empty where it has not, and on all ranks but a node's first.
  std::string silent_node() const;
  /// This rank has told what it knows, and ends: others need not wonder why it is gone.
  void has_spoken() { own().has_spoken = true; }
  /// Names ranks that have been at work for long, and wait for nobody; empty for none.
  std::string at_work() const;

 private:
  void run();
  void look(std::chrono::nanoseconds elapsed);
  std::optional<std::chrono::nanoseconds> own_limit() const;
  void publish(std::vector<Judge::Accusation> const& accusations);
  /// Of what is found: tells it, or ends the process.
  void act();
  void tell_of_slow(std::span<Glance const> glances);
  [[noreturn]] void end();
  /// The first rank that ends makes the launcher end the others.
  void await_last_words();
  /// A process that was stopped cannot end itself.
  void end_stopped() const;
  bool fatal() const;
  /// The first rank with which nothing is wrong.
  bool speaks() const;
  std::string describe(Slot const& slot, Finding finding) const;
  std::optional<ProcessState> process_of(std::size_t slot) const;
  Slot& own() const { return *slots_[own_]; }

  WatchdogConfig config_;
  std::vector<Slot*> slots_;
  std::size_t own_;
  trace::Beacon const& beacon_;
  bool on_gpu_;
  Reactions reactions_;
  Judge judge_;
  std::int64_t parent_;
  int fatal_looks_ = 0;          ///< one after the other
  std::set<std::size_t> told_;   ///< slots with which something is wrong
  std::vector<int> slow_looks_;  ///< by slot, one after the other; -1: told
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  ///< under mutex_
  std::thread thread_;
};

}  // namespace stratagem
