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

/// True for types that can be summed.
bool is_summable(at::ScalarType type);

}  // namespace stratagem
