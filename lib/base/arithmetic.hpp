#pragma once

#include <cstdint>
#include <limits>

namespace stratagem {

/// a / b rounded up, for a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// The smallest multiple of `unit` that is at least `value` >= 0.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return ceil_div(value, unit) * unit;
}

/// `value`, limited to the range of 64 bits. Users may write larger numbers to mean "never" or
/// "any".
inline std::int64_t saturated(double value) {
  constexpr double end = 9223372036854775808.0;  // 2^63
  if (value >= end) return std::numeric_limits<std::int64_t>::max();
  if (value < -end) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

}  // namespace stratagem
