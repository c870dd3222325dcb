#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/host_work.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// One operation of a communicator, driven by its progress thread.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Goes as far as it can without waiting; true when finished. Only the progress thread calls it.
  virtual bool advance() = 0;
  /// Collectives start in the order they were submitted, a few at a time; others at once.
  virtual bool collective() const = 0;
};

/// The thread that makes all calls of the MPI library after start-up. It sleeps when nothing is
/// under way, and only naps between tries when peers are late: computation needs the core more.
class Progress {
 public:
  /// Spans of sampled operations go to `recorder` (lane comm), where there is one.
  explicit Progress(trace::Recorder* recorder);
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
  };

  void run();
  bool advance_active();
  void start_waiting();
  void fail_all(std::exception_ptr const& failure);
  void finish(Entry& entry);

  static constexpr int max_active_collectives = 2;

  trace::Recorder* recorder_;
  std::mutex mutex_;
  std::condition_variable submitted_;
  std::deque<Entry> incoming_;  ///< under mutex_
  bool stopping_ = false;       ///< under mutex_
  std::exception_ptr failure_;  ///< under mutex_; once set, every operation fails with it

  std::deque<Entry> waiting_;  ///< collectives not yet started; progress thread only
  std::list<Entry> active_;    ///< progress thread only
  std::thread thread_;
};

}  // namespace stratagem
