#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace stratagem {

/// Nanoseconds of this machine's monotonic clock (CLOCK_MONOTONIC: comparable between processes).
inline std::int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Nanoseconds since 1970 UTC.
inline std::int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// "2026-01-31T23:59:59Z".
std::string utc_time(std::int64_t wall_ns);

}  // namespace stratagem
