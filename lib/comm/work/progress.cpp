#include "comm/work/progress.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds patience = 50us;
constexpr std::chrono::nanoseconds short_nap = 20us, longest_nap = 1ms;
constexpr double slowest = 0.1;  // [B/ns] slowest speed of something that still moves
constexpr auto pulse_period = 250ms;
constexpr std::chrono::nanoseconds long_wait = 1s;

Error error_of(std::exception_ptr const& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (Error const& error) {
    return error;
  } catch (std::exception const& error) {
    return {ExitCode::unexpected, error.what()};
  }
}

}  // namespace

Progress::Progress(trace::Recorder* recorder, std::chrono::nanoseconds timeout,
                   MismatchCheck* mismatch_check, std::unique_ptr<PeriodicTask> periodic_task)
    : recorder_(recorder),
      heartbeat_(recorder != nullptr ? &recorder->heartbeat() : nullptr),
      timeout_(timeout),
      mismatch_check_(mismatch_check),
      periodic_task_(std::move(periodic_task)),
      thread_([this] { run(); }) {}

Progress::~Progress() {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
    // A peer may be gone: while an exception unwinds, nothing is waited for.
    if (std::uncaught_exceptions() > 0 && !failure_)
      failure_ = std::make_exception_ptr(
          Error(ExitCode::peer_lost, "communication abandoned after an error"));
  }
  submitted_.notify_one();
  thread_.join();
}

Work Progress::submit(std::unique_ptr<Operation> operation, trace::SpanRecord span,
                      std::size_t queue) {
  auto work = std::make_shared<HostWork>(heartbeat_, operation->name().data());
  span.lane = trace::Lane::comm;
  span.step = recorder_ != nullptr ? recorder_->sampled_step() : -1;
  {
    std::lock_guard const lock(mutex_);
    if (failure_) {
      work->complete(failure_);
      return Work(std::move(work));
    }
    auto const number =
        heartbeat_ != nullptr ? heartbeat_->submitted(operation->name(), span.bytes, span.peer) : 0;
    incoming_.push_back({std::move(operation), work, span, number, queue});
  }
  submitted_.notify_one();
  return Work(std::move(work));
}

void Progress::run() {
  name_thread("communication");
  wake_on_time();
  try {
    while (take_submitted()) drive();
    if (periodic_task_) finish_pulse();
  } catch (...) {
    fail_all(cause_of(std::current_exception()));
  }
}

bool Progress::take_submitted() {
  std::unique_lock lock(mutex_);
  if (idle()) {
    auto const called = [this] { return stopping_ || !incoming_.empty(); };
    if (periodic_task_)
      submitted_.wait_for(lock, pulse_period, called);
    else
      submitted_.wait(lock, called);
    moved_at_ = monotonic_ns();
  }
  if (failure_) std::rethrow_exception(failure_);
  for (auto& entry : incoming_) {
    queues_.resize(std::max(queues_.size(), entry.queue + 1));
    if (entry.operation->collective())
      queues_[entry.queue].waiting.push_back(std::move(entry));
    else
      active_.push_back(std::move(entry));
  }
  incoming_.clear();
  return !(stopping_ && idle());
}

void Progress::drive() {
  if (heartbeat_ != nullptr) heartbeat_->beat();
  if (periodic_task_) periodic_task_->beat();
  if (idle()) return;
  start_waiting();
  if (advance_active())
    moved_at_ = monotonic_ns();
  else
    pause();
}

void Progress::start_waiting() {
  for (auto& [waiting, active] : queues_)
    for (; active < max_active_collectives && !waiting.empty(); ++active) {
      active_.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
}

bool Progress::idle() const {
  return active_.empty() &&
         std::ranges::all_of(queues_, [](Queue const& queue) { return queue.waiting.empty(); });
}

bool Progress::advance_active() {
  bool moved = false;
  for (auto entry = active_.begin(); entry != active_.end();) {
    if (entry->span.t_begin == 0) entry->span.t_begin = monotonic_ns();
    auto const state = entry->operation->advance();
    moved = moved || state != Operation::State::stuck;
    if (state == Operation::State::finished) {
      finish(*entry);
      entry = active_.erase(entry);
    } else {
      ++entry;
    }
  }
  return moved;
}

void Progress::pause() {
  auto const stuck = std::chrono::nanoseconds(monotonic_ns() - moved_at_);
  if (stuck < patience) return std::this_thread::yield();
  if (mismatch_check_ != nullptr) inquire(stuck);
  if (stuck < timeout_) return std::this_thread::sleep_for(nap_after(stuck));
  throw Error(
      ExitCode::stall,
      str(active_.front().operation->name(), " has waited ",
          format_duration(std::chrono::duration<double>(stuck).count()), " for other ranks"),
      "a rank hangs, is gone, or is slower than comm.timeout_s allows",
      "look at the first rank that ended, or raise comm.timeout_s");
}

/// Short while something may be moving, because each part of a message takes a call. Otherwise in
/// proportion to the wait so far: a late peer is still noticed soon, and waiting takes little
/// computing time.
std::chrono::nanoseconds Progress::nap_after(std::chrono::nanoseconds stuck) const {
  std::int64_t moving = 0;
  for (auto const& entry : active_) moving += entry.operation->in_flight();
  auto const may_move_for = static_cast<double>(moving) / slowest;
  if (static_cast<double>(stuck.count()) < may_move_for) return short_nap;
  return std::min(stuck / 4, longest_nap);
}

void Progress::inquire(std::chrono::nanoseconds stuck) {
  called_ = mismatch_check_->called();
  auto const name = active_.front().operation->name();
  if (called_)
    throw Error(ExitCode::peer_lost, str(name, " was given up"), "another rank cannot continue");
  if (mismatch_check_->differs_from_neighbours())
    throw Error(ExitCode::mismatch, str(name, " was given up"),
                "other ranks called another operation");
  if (stuck < long_wait || told_at_ == moved_at_) return;
  mismatch_check_->tell_neighbours();
  told_at_ = moved_at_;
}

void Progress::finish(Entry& entry) {
  if (entry.operation->collective()) --queues_[entry.queue].active;
  if (entry.span.step >= 0) {
    entry.span.t_end = monotonic_ns();
    recorder_->record(entry.span);
  }
  if (heartbeat_ != nullptr) heartbeat_->finished(entry.number);
  entry.work->complete();
}

void Progress::finish_pulse() {
  auto const deadline = monotonic_ns() + timeout_.count();
  while (!periodic_task_->finish() && monotonic_ns() < deadline)
    std::this_thread::sleep_for(longest_nap);
}

std::exception_ptr Progress::cause_of(std::exception_ptr const& failure) {
  {
    std::lock_guard const lock(mutex_);
    bool const abandoned = failure_ != nullptr;
    if (mismatch_check_ == nullptr || abandoned) return failure;
  }
  try {
    auto const own = called_ ? std::nullopt : std::optional<Error>(error_of(failure));
    if (auto const found = mismatch_check_->hold(own)) return std::make_exception_ptr(*found);
  } catch (Error const&) {
    // MPI cannot help any more; the first failure is reported.
  }
  return failure;
}

void Progress::fail_all(std::exception_ptr const& failure) {
  // The buffers of messages in flight must live longer than these, and their end cannot be
  // determined: active operations are kept until the process ends, which is soon.
  for (auto& entry : active_) {
    static_cast<void>(entry.operation.release());
    entry.work->complete(failure);
  }
  static_cast<void>(periodic_task_.release());
  for (auto& queue : queues_)
    for (auto& entry : queue.waiting) entry.work->complete(failure);
  std::lock_guard const lock(mutex_);
  failure_ = failure;
  for (auto& entry : incoming_) entry.work->complete(failure);
  incoming_.clear();
}

}  // namespace stratagem
