#pragma once

#include <memory>

namespace stratagem {

/// One operation in flight, as its backend sees it. It keeps the operation's tensors alive.
class WorkState {
 public:
  virtual ~WorkState() = default;
  virtual bool done() const = 0;
  /// Later work of the calling thread's compute stream sees the result. On the CPU, the host waits.
  virtual void wait_on_stream() = 0;
  virtual void wait_on_host() = 0;
};

/// Handle of an operation in flight. Until one of the two waits has returned, its tensors may not
/// be written, and its outputs may not be read. Waits may throw the operation's error; waiting
/// twice is allowed. A handle that is dropped early completes in its destructor.
class [[nodiscard]] Work {
 public:
  Work() = default;  ///< nothing in flight
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}
  ~Work();
  Work(Work&&) = default;
  Work& operator=(Work&& other) noexcept;

  void wait_on_stream();
  void wait_on_host();
  bool done() const { return !state_ || state_->done(); }

 private:
  void complete() noexcept;
  std::shared_ptr<WorkState> state_;
};

}  // namespace stratagem
