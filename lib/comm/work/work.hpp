#pragma once

#include <memory>

namespace stratagem {

/// One operation under way, as its backend sees it. It keeps the operation's tensors alive.
class WorkState {
 public:
  virtual ~WorkState() = default;
  virtual bool done() const = 0;
  /// Later work of the calling thread's compute stream sees the result; on the CPU the host waits.
  virtual void wait_on_stream() = 0;
  virtual void wait_on_host() = 0;
};

/// Handle of an operation in flight. Its tensors may be neither written nor, where they are
/// outputs, read before one of the two waits returned. Waits may throw what went wrong; waiting
/// twice is harmless. A handle dropped early completes in its destructor.
class [[nodiscard]] Work {
 public:
  Work() = default;  ///< nothing under way
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
