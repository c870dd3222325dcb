#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>

#include "comm/work/work.hpp"
#include "trace/heartbeat_status.hpp"

namespace stratagem {

/// Completed by another thread of this process.
class HostWork final : public WorkState {
 public:
  /// A thread that waits for it shows this at `heartbeat`, if there is one; `name` must be a
  /// literal.
  explicit HostWork(trace::HeartbeatStatus* heartbeat = nullptr, char const* name = "")
      : heartbeat_(heartbeat), name_(name) {}

  void complete(std::exception_ptr failure = nullptr);

  bool done() const override;
  void wait_on_stream() override { wait_on_host(); }
  void wait_on_host() override;

 private:
  trace::HeartbeatStatus* heartbeat_;
  char const* name_;
  mutable std::mutex mutex_;
  std::condition_variable completed_;
  bool done_ = false;
  std::exception_ptr failure_;
};

}  // namespace stratagem
