#include "comm/progress.hpp"

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace stratagem {
namespace {

/// Between tries that led nowhere: first give the core away, then nap ever longer.
class Patience {
 public:
  void reset() { tries_ = 0; }
  void wait() {
    ++tries_;
    if (tries_ <= 16) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(tries_ <= 64 ? 10 : 50));
  }

 private:
  int tries_ = 0;
};

}  // namespace

Progress::Progress(trace::Recorder* recorder) : recorder_(recorder), thread_([this] { run(); }) {}

Progress::~Progress() {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
    // A peer may be gone: while an exception unwinds nothing more is waited for.
    if (std::uncaught_exceptions() > 0 && !failure_)
      failure_ = std::make_exception_ptr(
          Error(ExitCode::peer_lost, "communication abandoned after an error"));
  }
  submitted_.notify_one();
  thread_.join();
}

Work Progress::submit(std::unique_ptr<Operation> operation, trace::SpanRecord span) {
  auto work = std::make_shared<HostWork>();
  span.lane = trace::Lane::comm;
  span.step = recorder_ != nullptr ? recorder_->sampled_step() : -1;
  {
    std::lock_guard const lock(mutex_);
    if (failure_) {
      work->complete(failure_);
      return Work(std::move(work));
    }
    incoming_.push_back({std::move(operation), work, span});
  }
  submitted_.notify_one();
  return Work(std::move(work));
}

void Progress::run() {
  Patience patience;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (active_.empty() && waiting_.empty())
        submitted_.wait(lock, [this] { return stopping_ || !incoming_.empty(); });
      if (failure_) {
        auto const failure = failure_;
        lock.unlock();
        return fail_all(failure);
      }
      if (stopping_ && incoming_.empty() && active_.empty() && waiting_.empty()) return;
      for (auto& entry : incoming_) {
        if (entry.operation->collective())
          waiting_.push_back(std::move(entry));
        else
          active_.push_back(std::move(entry));
      }
      incoming_.clear();
    }
    try {
      start_waiting();
      if (advance_active())
        patience.reset();
      else
        patience.wait();
    } catch (...) {
      std::lock_guard const lock(mutex_);
      failure_ = std::current_exception();
    }
  }
}

void Progress::start_waiting() {
  auto running = std::count_if(active_.begin(), active_.end(),
                               [](Entry const& e) { return e.operation->collective(); });
  for (; running < max_active_collectives && !waiting_.empty(); ++running) {
    waiting_.front().span.t_begin = monotonic_ns();
    active_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

bool Progress::advance_active() {
  bool finished_any = false;
  for (auto entry = active_.begin(); entry != active_.end();) {
    if (entry->span.t_begin == 0) entry->span.t_begin = monotonic_ns();
    if (entry->operation->advance()) {
      finish(*entry);
      entry = active_.erase(entry);
      finished_any = true;
    } else {
      ++entry;
    }
  }
  return finished_any;
}

void Progress::finish(Entry& entry) {
  if (entry.span.step >= 0) {
    entry.span.t_end = monotonic_ns();
    recorder_->record(entry.span);
  }
  entry.work->complete();
}

void Progress::fail_all(std::exception_ptr const& failure) {
  // The buffers of messages under way must outlive them, and nobody can tell when they end: what is
  // active is kept until the process ends, which it is about to.
  for (auto& entry : active_) {
    entry.work->complete(failure);
    static_cast<void>(entry.operation.release());
  }
  for (auto& entry : waiting_) entry.work->complete(failure);
  std::lock_guard const lock(mutex_);
  for (auto& entry : incoming_) entry.work->complete(failure);
  incoming_.clear();
}

}  // namespace stratagem
