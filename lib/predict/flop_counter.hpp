#pragma once

#include <cstdint>

namespace stratagem {

/// Counts the floating-point operations of convolutions, matrix products and attention that this
/// thread runs while it lives; a multiplication and an addition are 2. One at a time.
class FlopCounter {
 public:
  FlopCounter();
  ~FlopCounter();
  FlopCounter(FlopCounter const&) = delete;
  FlopCounter& operator=(FlopCounter const&) = delete;

  /// Since the last call.
  double take();

 private:
  std::uint64_t handle_;
};

}  // namespace stratagem
