#include "optim/sgd/sgd.hpp"

#include <ATen/ATen.h>

#include "base/simd.hpp"
#include "optim/elementwise.hpp"

namespace stratagem {
namespace {

template <class T>
struct Factors {
  T lr, momentum, weight_decay, scale;
  bool nesterov;
};

// Single passes over all elements. They return whether all gradients are finite: only then x - x
// is 0. Inlined, they are compiled for the instruction set of the function around them.
template <class T>
[[gnu::always_inline]] inline bool update_plain(T* p, T const* g, T* m, std::int64_t n,
                                                Factors<T> const& f) {
  Flag<T> bad = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    bad |= g[i] - g[i] != 0;
    T const v = settled(f.momentum * m[i] + (f.scale * g[i] + f.weight_decay * p[i]));
    m[i] = v;
    p[i] = p[i] - f.lr * v;
  }
  return bad == 0;
}

template <class T>
[[gnu::always_inline]] inline bool update_nesterov(T* p, T const* g, T* m, std::int64_t n,
                                                   Factors<T> const& f) {
  Flag<T> bad = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    bad |= g[i] - g[i] != 0;
    T const d = f.scale * g[i] + f.weight_decay * p[i];
    T const v = settled(f.momentum * m[i] + d);
    m[i] = v;
    p[i] = p[i] - f.lr * (d + f.momentum * v);
  }
  return bad == 0;
}

template <class T>
[[gnu::always_inline]] inline bool update_without_momentum(T* p, T const* g, std::int64_t n,
                                                           Factors<T> const& f) {
  Flag<T> bad = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    bad |= g[i] - g[i] != 0;
    p[i] = p[i] - f.lr * (f.scale * g[i] + f.weight_decay * p[i]);
  }
  return bad == 0;
}

// Function multiversioning applies to plain functions: one per type.
STRATAGEM_SIMD_CLONES bool update(float* p, float const* g, float* m, std::int64_t n,
                                  Factors<float> const& f) {
  return f.nesterov ? update_nesterov(p, g, m, n, f) : update_plain(p, g, m, n, f);
}
STRATAGEM_SIMD_CLONES bool update(double* p, double const* g, double* m, std::int64_t n,
                                  Factors<double> const& f) {
  return f.nesterov ? update_nesterov(p, g, m, n, f) : update_plain(p, g, m, n, f);
}
STRATAGEM_SIMD_CLONES bool update(float* p, float const* g, std::int64_t n,
                                  Factors<float> const& f) {
  return update_without_momentum(p, g, n, f);
}
STRATAGEM_SIMD_CLONES bool update(double* p, double const* g, std::int64_t n,
                                  Factors<double> const& f) {
  return update_without_momentum(p, g, n, f);
}

/// `momentum` may be undefined. True when all gradients are finite.
template <class T>
bool update_on_cpu(SgdConfig const& rule, Optimizer::Piece const& piece) {
  Factors<T> const factors{static_cast<T>(piece.lr), static_cast<T>(rule.momentum),
                           static_cast<T>(piece.weight_decay), static_cast<T>(piece.scale),
                           rule.nesterov};
  auto* p = piece.parameters.data_ptr<T>();
  auto const* g = piece.gradients.data_ptr<T>();
  auto* m = piece.state.empty() ? nullptr : piece.state.front().data_ptr<T>();
  return for_slices(piece.parameters.numel(), [&](std::int64_t begin, std::int64_t end) {
    return m != nullptr ? update(p + begin, g + begin, m + begin, end - begin, factors)
                        : update(p + begin, g + begin, end - begin, factors);
  });
}

}  // namespace

bool Sgd::update_on_cpu(Piece const& piece) {
  return piece.parameters.scalar_type() == at::kFloat
             ? stratagem::update_on_cpu<float>(rule_, piece)
             : stratagem::update_on_cpu<double>(rule_, piece);
}

void Sgd::update_on_gpu(Piece const& piece, std::optional<at::Tensor> const& refusal) {
  at::_fused_sgd_({piece.parameters}, {piece.gradients}, piece.state, piece.weight_decay,
                  rule_.momentum, piece.lr, 0.0, rule_.nesterov, false, false, {}, refusal);
}

}  // namespace stratagem
