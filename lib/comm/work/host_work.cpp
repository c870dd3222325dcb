#include "comm/work/host_work.hpp"

namespace stratagem {

void HostWork::complete(std::exception_ptr failure) {
  {
    std::lock_guard const lock(mutex_);
    done_ = true;
    failure_ = std::move(failure);
  }
  completed_.notify_all();
}

bool HostWork::done() const {
  std::lock_guard const lock(mutex_);
  return done_;
}

void HostWork::wait_on_host() {
  std::unique_lock lock(mutex_);
  if (!done_) {
    trace::HeartbeatStatus::Wait const sign(heartbeat_, name_);
    completed_.wait(lock, [this] { return done_; });
  }
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace stratagem
