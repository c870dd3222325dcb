#include "optim/sgd.hpp"

#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/contract.hpp"
#include "base/simd.hpp"

namespace stratagem {
namespace {

template <class T>
struct Factors {
  T lr, momentum, weight_decay, scale;
  bool nesterov;
};

/// Momentum that has no more gradients, as of units that have died, shrinks until it is subnormal,
/// and stays that: each operation on it then takes a processor a hundred times as long. Long before
/// it changes no parameter any more; there it becomes 0.
template <class T>
T settled(T momentum) {
  constexpr T least = std::numeric_limits<T>::min() * (1 << 24);  // 2e-31 in fp32
  return std::abs(momentum) < least ? T{0} : momentum;
}

/// As wide as the type, so that a register holds as many.
template <class T>
using Flag = std::conditional_t<sizeof(T) == sizeof(std::int32_t), std::int32_t, std::int64_t>;

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

/// All tensors have the same number of elements; `momentum` may be undefined. True when all
/// gradients are finite.
template <class T>
bool step_on_cpu(OptimizerConfig const& config, at::Tensor const& parameters,
                 at::Tensor const& gradients, at::Tensor const& momentum, double lr, double scale) {
  Factors<T> const factors{static_cast<T>(lr), static_cast<T>(config.momentum),
                           static_cast<T>(config.weight_decay), static_cast<T>(scale),
                           config.nesterov};
  auto* p = parameters.data_ptr<T>();
  auto const* g = gradients.data_ptr<T>();
  auto* m = momentum.defined() ? momentum.data_ptr<T>() : nullptr;
  std::atomic<bool> finite = true;
  at::parallel_for(0, parameters.numel(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    bool const all = m != nullptr ? update(p + begin, g + begin, m + begin, end - begin, factors)
                                  : update(p + begin, g + begin, end - begin, factors);
    if (!all) finite = false;
  });
  return finite;
}

}  // namespace

Sgd::Sgd(OptimizerConfig const& config, std::int64_t size, at::TensorOptions const& options)
    : config_(config) {
  if (config_.momentum != 0) momentum_ = at::zeros({size}, options);
}

OptimizerState Sgd::state() const {
  if (!momentum_.defined()) return {};
  return {{"momentum", momentum_}};
}

void Sgd::step(FlatRange range, at::Tensor const& parameters, at::Tensor const& gradients,
               double lr, double scale, std::optional<at::Tensor> const& refusal) {
  expects(parameters.numel() == range.size() && gradients.numel() == range.size() &&
              parameters.is_contiguous() && gradients.is_contiguous() &&
              gradients.scalar_type() == parameters.scalar_type(),
          "parameters and gradients of the range");
  at::NoGradGuard const no_grad;
  if (range.size() == 0) return;
  at::Tensor momentum;
  if (momentum_.defined()) momentum = momentum_.narrow(0, range.begin, range.size());
  if (parameters.is_cpu()) {
    bool const finite =
        parameters.scalar_type() == at::kFloat
            ? step_on_cpu<float>(config_, parameters, gradients, momentum, lr, scale)
            : step_on_cpu<double>(config_, parameters, gradients, momentum, lr, scale);
    finite_ = finite_ && finite;
    return;
  }
  if (scale != 1) gradients.mul_(scale);
  std::vector<at::Tensor> state;
  if (momentum.defined()) state.push_back(momentum);
  at::_fused_sgd_({parameters}, {gradients}, state, config_.weight_decay, config_.momentum, lr, 0.0,
                  config_.nesterov, false, false, {}, refusal);
}

}  // namespace stratagem
