#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/mpi/inquest.hpp"
#include "comm/work/host_work.hpp"
#include "comm/work/operation.hpp"
#include "comm/work/pulse.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// The thread that makes all calls of the MPI library after start-up. It sleeps when nothing is
/// under way; while something is, it tries again at once for a while, giving its core to whoever
/// computes, and then only now and then: a late peer needs no one to watch.
class Progress {
 public:
  /// Spans of sampled operations go to `recorder` (lane comm), where there is one, and to its
  /// beacon what is under way. When nothing has moved for `timeout` although something is,
  /// everything fails with Error(stall). Where there is an inquest, it is held on every failure,
  /// and what it finds is what is told; neighbours compare what they have called after a second in
  /// which nothing moved. `pulse`, which may be none, is beaten a few times a second from the begin
  /// to the end.
  Progress(trace::Recorder* recorder, std::chrono::nanoseconds timeout, Inquest* inquest = nullptr,
           std::unique_ptr<Pulse> pulse = nullptr);
  /// Finishes what was submitted; after a failure, drops it.
  ~Progress();
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;

  /// `span`: name, bytes and peer of the operation; its times and step are filled in here.
  Work submit(std::unique_ptr<Operation> operation, trace::SpanRecord span);

 private:
  struct Entry {
    std::unique_ptr<Operation> operation;
    std::shared_ptr<HostWork> work;
    trace::SpanRecord span;
    std::uint64_t number = 0;  ///< of the beacon
  };

  void run();
  /// Waits until there is something to do, or the pulse is due; false when there never will be.
  bool take_submitted();
  void drive();
  void start_waiting();
  bool advance_active();
  void pause();
  std::chrono::nanoseconds nap_after(std::chrono::nanoseconds stuck) const;
  /// Whether it is because ranks have called different collectives that nothing moves.
  void inquire(std::chrono::nanoseconds stuck);
  void finish(Entry& entry);
  void finish_pulse();
  bool idle() const { return active_.empty() && waiting_.empty(); }
  /// Why operations fail, where an inquest knows better.
  std::exception_ptr cause_of(std::exception_ptr const& failure);
  void fail_all(std::exception_ptr const& failure);

  static constexpr int max_active_collectives = 2;

  trace::Recorder* recorder_;
  trace::Beacon* beacon_;  ///< of the recorder
  std::chrono::nanoseconds timeout_;
  Inquest* inquest_;
  std::unique_ptr<Pulse> pulse_;
  std::mutex mutex_;
  std::condition_variable submitted_;
  std::deque<Entry> incoming_;  ///< under mutex_
  bool stopping_ = false;       ///< under mutex_
  std::exception_ptr failure_;  ///< under mutex_; once set, every operation fails with it

  std::deque<Entry> waiting_;  ///< collectives not yet started; progress thread only
  std::list<Entry> active_;    ///< progress thread only
  std::int64_t moved_at_ = 0;  ///< [ns] when something last moved; progress thread only
  bool called_ = false;        ///< by another rank's inquest; progress thread only
  std::int64_t told_at_ = 0;   ///< moved_at_ of the wait of which the neighbour was told
  std::thread thread_;
};

}  // namespace stratagem
