#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

namespace stratagem {

/// A running mean that has no more gradients, as of units that have died, shrinks until it is
/// subnormal, and stays that: each operation on it then takes a processor a hundred times as long.
/// Long before it changes no parameter any more; there it becomes 0.
template <class T>
[[gnu::always_inline]] inline T settled(T mean) {
  constexpr T least = std::numeric_limits<T>::min() * (1 << 24);  // 2e-31 in fp32
  return std::abs(mean) < least ? T{0} : mean;
}

/// As wide as the type, so that a register holds as many.
template <class T>
using Flag = std::conditional_t<sizeof(T) == sizeof(std::int32_t), std::int32_t, std::int64_t>;

/// Calls `update` with slices [begin, end) of so many elements, on several threads. True when all
/// calls returned true.
bool for_slices(std::int64_t elements,
                std::function<bool(std::int64_t begin, std::int64_t end)> const& update);

}  // namespace stratagem
