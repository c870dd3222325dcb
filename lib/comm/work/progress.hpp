#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/work/host_work.hpp"
#include "comm/work/mismatch_check.hpp"
#include "comm/work/operation.hpp"
#include "comm/work/periodic_task.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// The thread that makes all MPI calls after start-up. It sleeps when nothing is in flight.
/// Otherwise it polls without pause for a while, yielding its core to computing threads, and then
/// only at intervals, because a late peer needs no polling.
class Progress {
 public:
  /// Spans of sampled operations go to `recorder` (lane comm), and operations in flight to its
  /// heartbeat, if there is a recorder. If nothing has moved for `timeout` although operations are
  /// in flight, all fail with Error(stall). On a failure the ranks compare their calls by
  /// `mismatch_check`, which may be null; the result decides which error is reported. Neighbours
  /// compare theirs after a second in which nothing moved. `periodic_task`, which may be null, is
  /// called a few times per second from beginning to end.
  Progress(trace::Recorder* recorder, std::chrono::nanoseconds timeout,
           MismatchCheck* mismatch_check = nullptr,
           std::unique_ptr<PeriodicTask> periodic_task = nullptr);
  /// Finishes submitted operations; after a failure, drops them.
  ~Progress();
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;

  /// `span`: name, bytes and peer of the operation; its times and step are filled in here.
  /// Collectives of one `queue` start in the order of submission, a few at a time.
  Work submit(std::unique_ptr<Operation> operation, trace::SpanRecord span, std::size_t queue = 0);

 private:
  struct Entry {
    std::unique_ptr<Operation> operation;
    std::shared_ptr<HostWork> work;
    trace::SpanRecord span;
    std::uint64_t number = 0;  ///< of the heartbeat
    std::size_t queue = 0;
  };
  /// The collectives of a group.
  struct Queue {
    std::deque<Entry> waiting;  ///< not yet started
    int active = 0;
  };

  void run();
  /// Waits until there is something to do, or the periodic task is due; false if there never will
  /// be.
  bool take_submitted();
  void drive();
  void start_waiting();
  bool advance_active();
  void pause();
  std::chrono::nanoseconds nap_after(std::chrono::nanoseconds stuck) const;
  /// Whether nothing moves because ranks have called different collectives.
  void inquire(std::chrono::nanoseconds stuck);
  void finish(Entry& entry);
  void finish_pulse();
  bool idle() const;
  /// The reason why operations fail; a check of the ranks' calls may know a better one.
  std::exception_ptr cause_of(std::exception_ptr const& failure);
  void fail_all(std::exception_ptr const& failure);

  static constexpr int max_active_collectives = 2;  ///< of a queue

  trace::Recorder* recorder_;
  trace::HeartbeatStatus* heartbeat_;  ///< of the recorder
  std::chrono::nanoseconds timeout_;
  MismatchCheck* mismatch_check_;
  std::unique_ptr<PeriodicTask> periodic_task_;
  std::mutex mutex_;
  std::condition_variable submitted_;
  std::deque<Entry> incoming_;  ///< under mutex_
  bool stopping_ = false;       ///< under mutex_
  std::exception_ptr failure_;  ///< under mutex_; once set, every operation fails with it

  std::deque<Queue> queues_;   ///< progress thread only
  std::list<Entry> active_;    ///< progress thread only
  std::int64_t moved_at_ = 0;  ///< [ns] when something last moved; progress thread only
  bool called_ = false;        ///< another rank has begun a check; progress thread only
  std::int64_t told_at_ = 0;   ///< moved_at_ of the wait about which the neighbour was informed
  std::thread thread_;
};

}  // namespace stratagem
