#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.hpp"

namespace stratagem::sparse_code {

// A few elements of a tensor, at least one: their places, which ascend and are below 2^32, and
// their numbers.

/// Elements that are taken of `numel`: so many of them, rounded up.
std::int64_t count_of(double ratio, std::int64_t numel);

/// places [k] <- of the k largest magnitudes, and of equal ones the first. Magnitudes are compared
/// as bits: infinity is larger than all numbers, and NaN is larger than that.
void select_largest(std::span<float const> values, std::span<std::uint32_t> places);

/// places [k] <- one drawn of each of k nearly equal parts of `numel` elements, by the sequence
/// `sequence` of `random`.
void draw_places(CounterRandom const& random, std::uint64_t sequence, std::int64_t numel,
                 std::span<std::uint32_t> places);

/// Of an element that travels with its place.
inline constexpr std::int64_t element_bytes = 8;

/// wire [element_bytes k] <- places [k], then the values there.
void write(std::span<std::uint32_t const> places, std::span<float const> values,
           std::span<std::byte> wire);
/// values[place] <- values[place] + number, for all that `wire` says. AgreedError(mismatch), before
/// any of that, where places do not ascend or are none of `values`: every rank reads the same.
void add(std::span<std::byte const> wire, std::span<float> values);

/// residual <- residual + gradients.
void accumulate(std::span<float const> gradients, std::span<float> residual);
/// velocity <- momentum velocity + gradients; residual <- residual + velocity.
void accumulate(std::span<float const> gradients, float momentum, std::span<float> velocity,
                std::span<float> residual);
/// values[place] <- 0.
void clear(std::span<std::uint32_t const> places, std::span<float> values);

}  // namespace stratagem::sparse_code
