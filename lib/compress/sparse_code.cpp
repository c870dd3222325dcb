#include "compress/sparse_code.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "base/error.hpp"
#include "base/simd.hpp"

namespace stratagem::sparse_code {
namespace {

constexpr std::uint32_t magnitude_bits = 0x7fffffff;

std::uint32_t magnitude_of(float value) {
  return std::bit_cast<std::uint32_t>(value) & magnitude_bits;
}

/// A magnitude of 31 bits in digits, from the highest.
struct Digit {
  int bits = 0;
  int shift = 0;

  std::uint32_t last() const { return (std::uint32_t{1} << bits) - 1; }
};
constexpr std::array<Digit, 3> digits{{{11, 20}, {10, 10}, {10, 0}}};

/// The k-th largest of magnitudes, as far as it is known.
struct Threshold {
  std::uint32_t begin = 0;  ///< its digits so far
  std::int64_t k = 0;       ///< what it is among those that begin so

  /// Goes on with one more digit of it. `each` calls a function with magnitudes: all that begin so,
  /// and others.
  template <class Each>
  void go_on(Digit const& digit, Each each) {
    std::array<std::int64_t, std::size_t{1} << digits.front().bits> counts{};
    each([&](std::uint32_t magnitude) {
      if (magnitude >> digit.shift >> digit.bits == begin)
        ++counts[magnitude >> digit.shift & digit.last()];
    });
    auto found = digit.last();
    while (counts[found] < k) k -= counts[found--];
    begin = begin << digit.bits | found;
  }
};

std::uint32_t place_at(std::span<std::byte const> wire, std::size_t i) {
  std::uint32_t place = 0;
  std::memcpy(&place, wire.data() + i * sizeof(place), sizeof(place));
  return place;
}

void check_places(std::span<std::byte const> wire, std::size_t count, std::size_t numel) {
  std::int64_t before = -1;
  for (std::size_t i = 0; i < count; ++i) {
    auto const place = place_at(wire, i);
    if (place <= before || place >= numel)
      throw AgreedError(ExitCode::mismatch, "a sparse gradient arrived that is none",
                        "its places do not ascend, or are not in the tensor",
                        "ranks must run the same program; if they do, look at the network");
    before = place;
  }
}

STRATAGEM_SIMD_CLONES void accumulate_with_momentum(float const* g, float momentum,
                                                    float* __restrict u, float* __restrict v,
                                                    std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    u[i] = momentum * u[i] + g[i];
    v[i] += u[i];
  }
}

}  // namespace

std::int64_t count_of(double ratio, std::int64_t numel) {
  constexpr double exact = 1 - 1e-12;  // a product of 7.000000000000001 is meant to be 7
  auto const count = std::ceil(ratio * static_cast<double>(numel) * exact);
  return std::clamp(static_cast<std::int64_t>(count), std::int64_t{1}, numel);
}

void select_largest(std::span<float const> values, std::span<std::uint32_t> places) {
  Threshold least{.k = std::ssize(places)};
  least.go_on(digits[0], [&](auto const& count) {
    for (float const value : values) count(magnitude_of(value));
  });
  // All that may be among the largest: few, where the largest are few.
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t i = 0; i < values.size(); ++i)
    if (magnitude_of(values[i]) >> digits[0].shift >= least.begin) candidates.push_back(i);
  for (auto const& digit : {digits[1], digits[2]})
    least.go_on(digit, [&](auto const& count) {
      for (auto const i : candidates) count(magnitude_of(values[i]));
    });
  auto place = places.begin();
  for (auto const i : candidates) {
    auto const magnitude = magnitude_of(values[i]);
    if (magnitude > least.begin || (magnitude == least.begin && least.k-- > 0)) *place++ = i;
  }
}

void draw_places(CounterRandom const& random, std::uint64_t sequence, std::int64_t numel,
                 std::span<std::uint32_t> places) {
  auto const count = std::ssize(places);
  std::array<std::uint32_t, 4> words{};
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % 4 == 0) words = random.block(static_cast<std::uint64_t>(i / 4), sequence);
    // Without a product that overflows: the parts differ by one element at most.
    auto const whole = numel / count, rest = numel % count;
    auto const begin = i * whole + std::min(i, rest);
    auto const size = static_cast<std::uint64_t>(whole + (i < rest ? 1 : 0));
    auto const drawn = words[static_cast<std::size_t>(i % 4)] * size >> 32;
    places[static_cast<std::size_t>(i)] =
        static_cast<std::uint32_t>(begin) + static_cast<std::uint32_t>(drawn);
  }
}

void write(std::span<std::uint32_t const> places, std::span<float const> values,
           std::span<std::byte> wire) {
  std::memcpy(wire.data(), places.data(), places.size_bytes());
  auto* numbers = wire.data() + places.size_bytes();
  for (auto const place : places) {
    std::memcpy(numbers, &values[place], sizeof(float));
    numbers += sizeof(float);
  }
}

void add(std::span<std::byte const> wire, std::span<float> values) {
  auto const count = wire.size() / element_bytes;
  check_places(wire, count, values.size());
  auto const numbers = wire.subspan(count * sizeof(std::uint32_t));
  for (std::size_t i = 0; i < count; ++i)
    values[place_at(wire, i)] += std::bit_cast<float>(place_at(numbers, i));
}

void accumulate(std::span<float const> gradients, std::span<float> residual) {
  std::ranges::transform(gradients, residual, residual.begin(), std::plus());
}

void accumulate(std::span<float const> gradients, float momentum, std::span<float> velocity,
                std::span<float> residual) {
  accumulate_with_momentum(gradients.data(), momentum, velocity.data(), residual.data(),
                           gradients.size());
}

void clear(std::span<std::uint32_t const> places, std::span<float> values) {
  for (auto const place : places) values[place] = 0;
}

}  // namespace stratagem::sparse_code
