#include "comm/reduction.hpp"

#include <algorithm>
#include <array>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/simd.hpp"

namespace stratagem {
namespace {

// Function multiversioning works for plain functions, not for templates: one function per element
// type.
STRATAGEM_SIMD_CLONES void add(float* sum, float const* more, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += more[i];
}
STRATAGEM_SIMD_CLONES void add(double* sum, double const* more, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += more[i];
}
STRATAGEM_SIMD_CLONES void add(std::int64_t* sum, std::int64_t const* more, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += more[i];
}
STRATAGEM_SIMD_CLONES void add_pair(float* out, float const* a, float const* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

/// Accumulates block by block, so that the running sum stays in the L1 cache.
template <class Element, class Sum>
void sum_blocks(std::span<std::byte const* const> sources, std::byte* out, std::int64_t count) {
  constexpr std::int64_t block = 2048;
  std::array<Sum, block> sum{}, converted{};
  for (std::int64_t begin = 0; begin < count; begin += block) {
    auto const n = std::min(block, count - begin);
    for (std::size_t s = 0; s < sources.size(); ++s) {
      auto const* source = reinterpret_cast<Element const*>(sources[s]) + begin;
      if (s == 0) {
        std::copy_n(source, n, sum.begin());
      } else if constexpr (std::is_same_v<Element, Sum>) {
        add(sum.data(), source, n);
      } else {
        std::copy_n(source, n, converted.begin());
        add(sum.data(), converted.data(), n);
      }
    }
    std::transform(sum.begin(), sum.begin() + n, reinterpret_cast<Element*>(out) + begin,
                   [](Sum value) { return static_cast<Element>(value); });
  }
}

}  // namespace

void sum_in_order(std::span<std::byte const* const> sources, std::byte* out, std::int64_t count,
                  at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      if (sources.size() == 2)
        return add_pair(reinterpret_cast<float*>(out), reinterpret_cast<float const*>(sources[0]),
                        reinterpret_cast<float const*>(sources[1]), count);
      return sum_blocks<float, float>(sources, out, count);
    case at::kDouble:
      return sum_blocks<double, double>(sources, out, count);
    case at::kLong:
      return sum_blocks<std::int64_t, std::int64_t>(sources, out, count);
    case at::kBFloat16:
      return sum_blocks<at::BFloat16, float>(sources, out, count);
    case at::kHalf:
      return sum_blocks<at::Half, float>(sources, out, count);
    default:
      expects(false, "a type that can be summed");
  }
}

bool is_summable(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || type == at::kLong || type == at::kBFloat16 ||
         type == at::kHalf;
}

}  // namespace stratagem
