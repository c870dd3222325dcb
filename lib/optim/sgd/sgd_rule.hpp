#pragma once

#include "optim/settled.hpp"

namespace stratagem {

// What an update makes of an element (see Sgd). The same on host and device, each operation rounded
// by itself.

template <class T>
struct SgdFactors {
  T lr, momentum, weight_decay;
  T scale;  ///< of the gradients

  [[gnu::always_inline]] constexpr T direction(T p, T g) const {
    return scale * g + weight_decay * p;
  }
};

template <class T>
struct SgdWithoutMomentum {
  using Element = T;
  static constexpr int kinds = 0;  ///< of state
  SgdFactors<T> factors;

  [[gnu::always_inline]] constexpr void operator()(T& p, T g) const {
    p = p - factors.lr * factors.direction(p, g);
  }
};

template <class T>
struct SgdWithMomentum {
  using Element = T;
  static constexpr int kinds = 1;
  SgdFactors<T> factors;

  [[gnu::always_inline]] constexpr void operator()(T& p, T g, T& m) const {
    m = settled(factors.momentum * m + factors.direction(p, g));
    p = p - factors.lr * m;
  }
};

template <class T>
struct NesterovSgd {
  using Element = T;
  static constexpr int kinds = 1;
  SgdFactors<T> factors;

  [[gnu::always_inline]] constexpr void operator()(T& p, T g, T& m) const {
    T const d = factors.direction(p, g);
    m = settled(factors.momentum * m + d);
    p = p - factors.lr * (d + factors.momentum * m);
  }
};

}  // namespace stratagem
