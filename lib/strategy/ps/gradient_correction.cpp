#include "strategy/ps/gradient_correction.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/simd.hpp"
#include "gpu/memory.hpp"
#include "optim/settled.hpp"
#include "strategy/ps/elements.hpp"

namespace stratagem {
namespace {

constexpr double steps_decay = 0.999;  // of the mean square of updates

// Function multiversioning applies to plain functions: one per type.
STRATAGEM_SIMD_CLONES void add_compensation(float* g, float const* p, float const* base,
                                            std::int64_t n, float lambda) {
  for (std::int64_t i = 0; i < n; ++i) g[i] = g[i] + lambda * g[i] * g[i] * (p[i] - base[i]);
}
STRATAGEM_SIMD_CLONES void add_compensation(double* g, double const* p, double const* base,
                                            std::int64_t n, double lambda) {
  for (std::int64_t i = 0; i < n; ++i) g[i] = g[i] + lambda * g[i] * g[i] * (p[i] - base[i]);
}

template <class T>
struct Adaptive {
  T lambda;       ///< lambda_0
  T factor;       ///< of the gradient
  T decay, rest;  ///< of the mean square, and 1 - decay
};

/// In the type of the elements.
template <class T>
Adaptive<T> adaptive(T const* /*elements*/, double lambda, double factor, double decay) {
  return {static_cast<T>(lambda), static_cast<T>(factor), static_cast<T>(decay),
          static_cast<T>(1 - decay)};
}

/// lambda = lambda_0 / sqrt(mean square + eps). Inlined, it is compiled for the instruction set of
/// the function around it.
template <class T>
[[gnu::always_inline]] inline void compensate_elements(T* grad, T* mean_square, T const* p,
                                                       T const* base, std::int64_t n,
                                                       Adaptive<T> f) {
  constexpr auto eps = static_cast<T>(1e-7);  // as in the paper
  for (std::int64_t i = 0; i < n; ++i) {
    T const g = f.factor * grad[i];
    T const square = settled(f.decay * mean_square[i] + f.rest * (g * g));
    mean_square[i] = square;
    grad[i] = grad[i] + f.lambda / std::sqrt(square + eps) * g * (p[i] - base[i]) * grad[i];
  }
}

/// C = sqrt(mean square x unbias). Where nothing has changed yet there is no gap.
template <class T>
[[gnu::always_inline]] inline void divide_elements(T* g, T const* mean_square, T const* p,
                                                   T const* base, std::int64_t n, T unbias) {
  constexpr T least = std::numeric_limits<T>::min();
  for (std::int64_t i = 0; i < n; ++i) {
    T const step = std::sqrt(mean_square[i] * unbias);
    T const steps = std::abs(p[i] - base[i]) / std::max(step, least);
    g[i] = g[i] / (1 + (step > 0 ? steps : T{0}));
  }
}

template <class T>
[[gnu::always_inline]] inline void average_elements(T* mean_square, T const* before, T const* now,
                                                    std::int64_t n, T decay, T rest) {
  for (std::int64_t i = 0; i < n; ++i) {
    T const step = now[i] - before[i];
    mean_square[i] = settled(decay * mean_square[i] + rest * (step * step));
  }
}

STRATAGEM_SIMD_CLONES void add_compensation(float* g, float* square, float const* p,
                                            float const* base, std::int64_t n, Adaptive<float> f) {
  compensate_elements(g, square, p, base, n, f);
}
STRATAGEM_SIMD_CLONES void add_compensation(double* g, double* square, double const* p,
                                            double const* base, std::int64_t n,
                                            Adaptive<double> f) {
  compensate_elements(g, square, p, base, n, f);
}

STRATAGEM_SIMD_CLONES void divide(float* g, float const* square, float const* p, float const* base,
                                  std::int64_t n, float unbias) {
  divide_elements(g, square, p, base, n, unbias);
}
STRATAGEM_SIMD_CLONES void divide(double* g, double const* square, double const* p,
                                  double const* base, std::int64_t n, double unbias) {
  divide_elements(g, square, p, base, n, unbias);
}
STRATAGEM_SIMD_CLONES void average(float* square, float const* before, float const* now,
                                   std::int64_t n, float decay, float rest) {
  average_elements(square, before, now, n, decay, rest);
}
STRATAGEM_SIMD_CLONES void average(double* square, double const* before, double const* now,
                                   std::int64_t n, double decay, double rest) {
  average_elements(square, before, now, n, decay, rest);
}

}  // namespace

GradientCorrection::GradientCorrection(ServerPolicy const& policy, at::Tensor const& parameters)
    : policy_(policy) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::optimizer, {});
  for (auto const& kind : policy.state_kinds())
    state_.emplace_back(kind, at::zeros_like(parameters));
}

at::Tensor const& GradientCorrection::kept(char const* kind) const {
  auto const found = std::ranges::find(state_, kind, [](auto const& each) { return each.first; });
  expects(found != state_.end(), "state that the policy names");
  return found->second;
}

void GradientCorrection::correct(at::Tensor const& gradient, at::Tensor const& parameters,
                                 at::Tensor const& base, double factor) {
  if (policy_.correction > 0) compensate(gradient, parameters, base, factor);
  if (learns() && seen_ > 0) divide_by_gap(gradient, parameters, base);
}

void GradientCorrection::compensate(at::Tensor const& gradient, at::Tensor const& parameters,
                                    at::Tensor const& base, double factor) {
  if (!policy_.correction_decay) {
    auto const lambda = policy_.correction * factor;
    return for_pieces(
        [lambda](std::int64_t n, auto* g, auto const* p, auto const* from) {
          add_compensation(g, p, from, n, as_element(g, lambda));
        },
        gradient, parameters, base);
  }
  auto const lambda = policy_.correction, decay = *policy_.correction_decay;
  for_pieces(
      [=](std::int64_t n, auto* g, auto* square, auto const* p, auto const* from) {
        add_compensation(g, square, p, from, n, adaptive(g, lambda, factor, decay));
      },
      gradient, kept(ServerPolicy::gradient_square), parameters, base);
}

void GradientCorrection::divide_by_gap(at::Tensor const& gradient, at::Tensor const& parameters,
                                       at::Tensor const& base) {
  for_pieces([unbias = 1 / seen_](
                 std::int64_t n, auto* g, auto const* square, auto const* p,
                 auto const* from) { divide(g, square, p, from, n, as_element(g, unbias)); },
             gradient, kept(ServerPolicy::step_square), parameters, base);
}

void GradientCorrection::begin_update() {
  seen_ = steps_decay * seen_ + (1 - steps_decay);
}

void GradientCorrection::learn(FlatRange range, at::Tensor const& before, at::Tensor const& now) {
  for_pieces(
      [](std::int64_t n, auto* square, auto const* from, auto const* to) {
        average(square, from, to, n, as_element(square, steps_decay),
                as_element(square, 1 - steps_decay));
      },
      kept(ServerPolicy::step_square).narrow(0, range.begin, range.size()), before, now);
}

std::map<std::string, double*> GradientCorrection::counters() {
  if (!learns()) return {};
  return {{"step_square_weight", &seen_}};
}

}  // namespace stratagem
