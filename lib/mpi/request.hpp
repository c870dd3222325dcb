#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace stratagem::mpi {

/// One message in flight. Its buffer belongs to the caller until test() is true or wait() has
/// returned; until then the request must not be destroyed. A message must fill the buffer;
/// otherwise the ranks do not mean the same message: Error(mismatch).
class Request {
 public:
  Request() = default;
  Request(Request&& other) noexcept
      : handle_(std::exchange(other.handle_, none)), expected_(other.expected_) {}
  Request& operator=(Request&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(expected_, other.expected_);
    return *this;
  }

  /// True if nothing is in flight (any more).
  bool test();
  void wait();

 private:
  friend class Comm;
  static constexpr std::uintptr_t none = 0;
  static constexpr int is_sent = -1;
  Request(std::uintptr_t handle, int expected) : handle_(handle), expected_(expected) {}

  std::uintptr_t handle_ = none;  ///< an MPI_Request, so that mpi.h stays out of headers
  int expected_ = is_sent;        ///< bytes that must arrive
};

/// True if all of them are done.
bool test_all(std::span<Request> requests);

}  // namespace stratagem::mpi
