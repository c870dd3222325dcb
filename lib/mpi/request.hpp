#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace stratagem::mpi {

/// One message under way. Its buffer belongs to the caller until test() is true or wait() returned;
/// a request may not be dropped before.
class Request {
 public:
  Request() = default;
  Request(Request&& other) noexcept : handle_(std::exchange(other.handle_, none)) {}
  Request& operator=(Request&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  /// True when nothing is (any more) under way.
  bool test();
  void wait();

 private:
  friend class Comm;
  static constexpr std::uintptr_t none = 0;
  explicit Request(std::uintptr_t handle) : handle_(handle) {}

  std::uintptr_t handle_ = none;  ///< an MPI_Request, so that mpi.h stays out of headers
};

/// True when all of them are done.
bool test_all(std::span<Request> requests);

}  // namespace stratagem::mpi
