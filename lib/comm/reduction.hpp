#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace stratagem {

/// out[i] <- ((s_0[i] + s_1[i]) + s_2[i]) + ..., `count` elements of `type`. `out` may be one of
/// the sources. 16-bit floats are added in fp32 and rounded once.
void sum_in_order(std::span<std::byte const* const> sources, std::byte* out, std::int64_t count,
                  at::ScalarType type);

/// The type in which elements of `type` are added: fp32 for 16-bit floats, else `type`.
at::ScalarType sum_type(at::ScalarType type);

/// sums[i] <- ((sums[i] + s_0[i]) + s_1[i]) + ..., or without sums[i] if it holds no prefix yet.
/// Sources of `type`, sums of its sum_type(). Followed by round_sums(), the bits are those of
/// sum_in_order() over all sources that were added.
void add_in_order(std::span<std::byte const* const> sources, std::byte* sums, bool has_prefix,
                  std::int64_t count, at::ScalarType type);

/// Sums of sum_type(type) become elements of `type`, at the beginning of the same memory.
void round_sums(std::byte* sums, std::int64_t count, at::ScalarType type);

/// True for types that can be summed.
bool is_summable(at::ScalarType type);

}  // namespace stratagem
