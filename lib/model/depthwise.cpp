#include "model/depthwise.hpp"

#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/simd.hpp"

namespace stratagem {
namespace {

/// First elements of two rows of channels that are multiplied.
struct Term {
  std::int64_t a, b;
};

/// sum[c] += the sum of a[term.a + c] b[term.b + c] over all terms in their order, for each of
/// `channels`. Sums of sums lose less than one long sum.
template <class T>
[[gnu::always_inline]] inline void add_terms(T* sum, T const* a, T const* b,
                                             std::vector<Term> const& terms,
                                             std::int64_t channels) {
  constexpr std::int64_t block = 32;  // sums that stay in registers
  std::int64_t first = 0;
  for (; first + block <= channels; first += block) {
    T sums[block]{};
    for (auto const& term : terms) {
      T const* const from_a = a + term.a + first;
      T const* const from_b = b + term.b + first;
      for (std::int64_t i = 0; i < block; ++i) sums[i] = sums[i] + from_a[i] * from_b[i];
    }
    for (std::int64_t i = 0; i < block; ++i) sum[first + i] = sum[first + i] + sums[i];
  }
  for (; first < channels; ++first) {
    T own = 0;
    for (auto const& term : terms) own = own + a[term.a + first] * b[term.b + first];
    sum[first] = sum[first] + own;
  }
}

// Function multiversioning applies to plain functions: one per type.
STRATAGEM_SIMD_CLONES void sum_products(float* sum, float const* a, float const* b,
                                        std::vector<Term> const& terms, std::int64_t channels) {
  add_terms(sum, a, b, terms, channels);
}
STRATAGEM_SIMD_CLONES void sum_products(double* sum, double const* a, double const* b,
                                        std::vector<Term> const& terms, std::int64_t channels) {
  add_terms(sum, a, b, terms, channels);
}

/// The terms of each row of channels of one tensor: of each pixel of the output or of the input, or
/// of each tap.
using Terms = std::vector<std::vector<Term>>;

enum class Of { output, input, taps };

Terms terms_of(TapPlan const& plan, Of what) {
  auto const rows = what == Of::output  ? plan.out_pixels()
                    : what == Of::input ? plan.in_pixels()
                                        : plan.kernel * plan.kernel;
  Terms terms(static_cast<std::size_t>(rows));
  auto const add = [&](std::int64_t row, Term const& term) {
    terms[static_cast<std::size_t>(row / plan.channels)].push_back(term);
  };
  for (auto const& run : plan.runs())
    for (std::int64_t at = 0; at < run.width; at += plan.channels) {
      auto const x = run.x + at, tap = run.weight * plan.channels + at, y = run.y;
      if (what == Of::output) add(y, {x, tap});
      if (what == Of::input) add(x, {y, tap});
      if (what == Of::taps) add(tap, {x, y});
    }
  return terms;
}

/// [taps, channels], so that the channels of a tap lie together.
at::Tensor by_tap(at::Tensor const& weight) {
  return weight.reshape({weight.size(0), -1}).t().contiguous();
}

/// Of every sample: rows of `sum` from rows of `a` and of the taps.
template <class T>
void sum_samples(TapPlan const& plan, Terms const& terms, T* sum, T const* a,
                 std::int64_t pixels_of_a, T const* taps) {
  auto const rows = static_cast<std::int64_t>(terms.size());
  at::parallel_for(0, plan.samples, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto n = begin; n < end; ++n)
      for (std::int64_t row = 0; row < rows; ++row)
        sum_products(sum + (n * rows + row) * plan.channels, a + n * pixels_of_a * plan.channels,
                     taps, terms[static_cast<std::size_t>(row)], plan.channels);
  });
}

/// Each thread has its own taps, so that samples are added in their order.
template <class T>
void sum_taps(TapPlan const& plan, T* taps, T const* x, T const* y) {
  auto const terms = terms_of(plan, Of::taps);
  at::parallel_for(0, std::ssize(terms), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = 0; n < plan.samples; ++n)
      for (auto tap = begin; tap < end; ++tap)
        sum_products(taps + tap * plan.channels, x + n * plan.in_pixels() * plan.channels,
                     y + n * plan.out_pixels() * plan.channels,
                     terms[static_cast<std::size_t>(tap)], plan.channels);
  });
}

template <class Body>
void by_type(at::Tensor const& x, Body body) {
  if (x.scalar_type() == at::kFloat)
    body(float{});
  else
    body(double{});
}

}  // namespace

void depthwise(TapPlan const& plan, at::Tensor const& x, at::Tensor const& weight,
               at::Tensor const& y) {
  auto const taps = by_tap(weight);
  by_type(x, [&]<class T>(T) {
    sum_samples(plan, terms_of(plan, Of::output), y.data_ptr<T>(), x.const_data_ptr<T>(),
                plan.in_pixels(), taps.const_data_ptr<T>());
  });
}

void depthwise_backward(TapPlan const& plan, at::Tensor const& x, at::Tensor const& weight,
                        at::Tensor const& y, at::Tensor const& into_x,
                        at::Tensor const& into_weight) {
  auto const taps = by_tap(weight);
  by_type(x, [&]<class T>(T) {
    if (into_x.defined())
      sum_samples(plan, terms_of(plan, Of::input), into_x.data_ptr<T>(), y.const_data_ptr<T>(),
                  plan.out_pixels(), taps.const_data_ptr<T>());
    if (!into_weight.defined()) return;
    auto const sums = at::zeros_like(taps);
    sum_taps(plan, sums.data_ptr<T>(), x.const_data_ptr<T>(), y.const_data_ptr<T>());
    into_weight.copy_(sums.t().view(into_weight.sizes()));
  });
}

}  // namespace stratagem
