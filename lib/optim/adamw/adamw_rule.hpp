#pragma once

#include <cmath>
#include <limits>

#include "optim/settled.hpp"

namespace stratagem {

/// Without subnormal numbers, with which processors are slow. A root as small is nothing beside
/// eps.
template <class T>
[[gnu::always_inline]] constexpr T normal(T square) {
  return square < std::numeric_limits<T>::min() ? T{0} : square;
}

/// What an update makes of an element (see Adamw). The same on host and device, each operation
/// rounded by itself.
template <class T>
struct AdamwRule {
  using Element = T;
  static constexpr int kinds = 2;  ///< of state
  T shrink;                        ///< 1 - lr weight_decay
  T scale;                         ///< of the gradients
  T beta1, new1;                   ///< and 1 - beta1
  T beta2, new2;                   ///< and 1 - beta2
  T step;                          ///< lr / (1 - beta1^t)
  T root_unbias;                   ///< 1 / sqrt(1 - beta2^t)
  T eps;

  [[gnu::always_inline]] constexpr void operator()(T& p, T gradient, T& m, T& v) const {
    T const g = scale * gradient;
    m = settled(beta1 * m + new1 * g);
    v = normal(beta2 * v + new2 * (g * g));
    p = shrink * p - step * (m / (std::sqrt(v) * root_unbias + eps));
  }
};

}  // namespace stratagem
