#pragma once

#include <cmath>
#include <limits>

namespace stratagem {

/// A running mean that has no more gradients, as of units that have died, shrinks until it is
/// subnormal, and stays that: each operation on it then takes a processor a hundred times as long.
/// Long before it changes no parameter any more; there it becomes 0.
template <class T>
[[gnu::always_inline]] constexpr T settled(T mean) {
  constexpr T least = std::numeric_limits<T>::min() * (1 << 24);  // 2e-31 in fp32
  return std::abs(mean) < least ? T{0} : mean;
}

}  // namespace stratagem
