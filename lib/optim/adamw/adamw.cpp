#include "optim/adamw/adamw.hpp"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/simd.hpp"
#include "optim/elementwise.hpp"

namespace stratagem {
namespace {

template <class T>
struct Factors {
  T shrink;       ///< 1 - lr weight_decay
  T scale;        ///< of the gradients
  T beta1, new1;  ///< and 1 - beta1
  T beta2, new2;  ///< and 1 - beta2
  T step;         ///< lr / (1 - beta1^t)
  T root_unbias;  ///< 1 / sqrt(1 - beta2^t)
  T eps;
};

/// Without subnormal numbers, with which processors are slow. A root as small is nothing beside
/// eps.
template <class T>
[[gnu::always_inline]] inline T normal(T square) {
  return square < std::numeric_limits<T>::min() ? T{0} : square;
}

/// A single pass over all elements. Returns whether all gradients are finite: only then g - g is 0.
/// Inlined, it is compiled for the instruction set of the function around it.
template <class T>
[[gnu::always_inline]] inline bool update_elements(T* p, T const* grad, T* mean, T* square,
                                                   std::int64_t n, Factors<T> const& f) {
  Flag<T> bad = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    bad |= grad[i] - grad[i] != 0;
    T const g = f.scale * grad[i];
    T const m = settled(f.beta1 * mean[i] + f.new1 * g);
    T const v = normal(f.beta2 * square[i] + f.new2 * (g * g));
    mean[i] = m;
    square[i] = v;
    p[i] = f.shrink * p[i] - f.step * (m / (std::sqrt(v) * f.root_unbias + f.eps));
  }
  return bad == 0;
}

// Function multiversioning applies to plain functions: one per type.
STRATAGEM_SIMD_CLONES bool update(float* p, float const* g, float* m, float* v, std::int64_t n,
                                  Factors<float> const& f) {
  return update_elements(p, g, m, v, n, f);
}
STRATAGEM_SIMD_CLONES bool update(double* p, double const* g, double* m, double* v, std::int64_t n,
                                  Factors<double> const& f) {
  return update_elements(p, g, m, v, n, f);
}

/// By repeated multiplication alone, which is the same on every machine.
double power(double base, double exponent) {
  double result = 1;
  for (auto left = static_cast<std::int64_t>(exponent); left > 0; left /= 2) {
    if (left % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

template <class T>
bool update_on_cpu(AdamwConfig const& rule, double updates, Optimizer::Piece const& piece) {
  Factors<T> const factors{
      .shrink = static_cast<T>(1 - piece.lr * piece.weight_decay),
      .scale = static_cast<T>(piece.scale),
      .beta1 = static_cast<T>(rule.beta1),
      .new1 = static_cast<T>(1 - rule.beta1),
      .beta2 = static_cast<T>(rule.beta2),
      .new2 = static_cast<T>(1 - rule.beta2),
      .step = static_cast<T>(piece.lr / (1 - power(rule.beta1, updates))),
      .root_unbias = static_cast<T>(1 / std::sqrt(1 - power(rule.beta2, updates))),
      .eps = static_cast<T>(rule.eps),
  };
  auto* p = piece.parameters.data_ptr<T>();
  auto const* g = piece.gradients.data_ptr<T>();
  auto* m = piece.state[0].data_ptr<T>();
  auto* v = piece.state[1].data_ptr<T>();
  return for_slices(piece.parameters.numel(), [&](std::int64_t begin, std::int64_t end) {
    return update(p + begin, g + begin, m + begin, v + begin, end - begin, factors);
  });
}

}  // namespace

bool Adamw::update_on_cpu(Piece const& piece) {
  expects(updates_ > 0, "an update has begun");
  return piece.parameters.scalar_type() == at::kFloat
             ? stratagem::update_on_cpu<float>(rule_, updates_, piece)
             : stratagem::update_on_cpu<double>(rule_, updates_, piece);
}

void Adamw::update_on_gpu(Piece const& piece, std::optional<at::Tensor> const& refusal) {
  auto const updates = at::full({}, updates_, piece.parameters.options().dtype(at::kFloat));
  at::_fused_adamw_({piece.parameters}, {piece.gradients}, {piece.state[0]}, {piece.state[1]}, {},
                    {updates}, piece.lr, rule_.beta1, rule_.beta2, piece.weight_decay, rule_.eps,
                    /*amsgrad=*/false, /*maximize=*/false, {}, refusal);
}

}  // namespace stratagem
