#include "comm/reduction.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

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
/// Modulo 2^32.
STRATAGEM_SIMD_CLONES void add(std::int32_t* sum, std::int32_t const* more, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    sum[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[i]) +
                                       static_cast<std::uint32_t>(more[i]));
}
STRATAGEM_SIMD_CLONES void add_pair(float* out, float const* a, float const* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

constexpr std::int64_t block = 2048;  // elements; running sums stay in the L1 cache

/// Adds n elements of each source, from `begin` on, to n sums.
template <class Element, class Sum>
void add_block(std::span<std::byte const* const> sources, std::int64_t begin, std::int64_t n,
               bool has_prefix, Sum* sums) {
  std::array<Sum, block> converted;
  for (auto const* bytes : sources) {
    auto const* source = reinterpret_cast<Element const*>(bytes) + begin;
    if (!std::exchange(has_prefix, true)) {
      std::copy_n(source, n, sums);
    } else if constexpr (std::is_same_v<Element, Sum>) {
      add(sums, source, n);
    } else {
      std::copy_n(source, n, converted.begin());
      add(sums, converted.data(), n);
    }
  }
}

template <class Element, class Sum>
void round_block(Sum const* sums, std::int64_t n, Element* out) {
  std::transform(sums, sums + n, out, [](Sum value) { return static_cast<Element>(value); });
}

/// Calls `act.operator()<Element, Sum>(begin, n)` for each block.
template <class Act>
void for_blocks(std::int64_t count, at::ScalarType type, Act act) {
  for (std::int64_t begin = 0; begin < count; begin += block) {
    auto const n = std::min(block, count - begin);
    switch (type) {
      case at::kFloat:
        act.template operator()<float, float>(begin, n);
        break;
      case at::kDouble:
        act.template operator()<double, double>(begin, n);
        break;
      case at::kLong:
        act.template operator()<std::int64_t, std::int64_t>(begin, n);
        break;
      case at::kInt:
        act.template operator()<std::int32_t, std::int32_t>(begin, n);
        break;
      case at::kBFloat16:
        act.template operator()<at::BFloat16, float>(begin, n);
        break;
      case at::kHalf:
        act.template operator()<at::Half, float>(begin, n);
        break;
      default:
        expects(false, "a type that can be summed");
    }
  }
}

}  // namespace

void sum_in_order(std::span<std::byte const* const> sources, std::byte* out, std::int64_t count,
                  at::ScalarType type) {
  if (type == at::kFloat && sources.size() == 2)
    return add_pair(reinterpret_cast<float*>(out), reinterpret_cast<float const*>(sources[0]),
                    reinterpret_cast<float const*>(sources[1]), count);
  for_blocks(count, type, [&]<class Element, class Sum>(std::int64_t begin, std::int64_t n) {
    std::array<Sum, block> sums;
    add_block<Element>(sources, begin, n, false, sums.data());
    round_block(sums.data(), n, reinterpret_cast<Element*>(out) + begin);
  });
}

at::ScalarType sum_type(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf ? at::kFloat : type;
}

void add_in_order(std::span<std::byte const* const> sources, std::byte* sums, bool has_prefix,
                  std::int64_t count, at::ScalarType type) {
  for_blocks(count, type, [&]<class Element, class Sum>(std::int64_t begin, std::int64_t n) {
    add_block<Element>(sources, begin, n, has_prefix, reinterpret_cast<Sum*>(sums) + begin);
  });
}

void round_sums(std::byte* sums, std::int64_t count, at::ScalarType type) {
  if (sum_type(type) == type) return;
  for_blocks(count, type, [&]<class Element, class Sum>(std::int64_t begin, std::int64_t n) {
    std::array<Sum, block> exact;
    std::memcpy(exact.data(), reinterpret_cast<Sum const*>(sums) + begin,
                static_cast<std::size_t>(n) * sizeof(Sum));
    round_block(exact.data(), n, reinterpret_cast<Element*>(sums) + begin);
  });
}

bool is_summable(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || type == at::kLong || type == at::kInt ||
         type == at::kBFloat16 || type == at::kHalf;
}

}  // namespace stratagem
