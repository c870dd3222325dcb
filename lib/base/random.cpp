#include "base/random.hpp"

#include <cmath>
#include <numbers>

#include "base/hash/hash.hpp"

namespace stratagem {

CounterRandom::CounterRandom(std::uint64_t seed, std::string_view stream) {
  std::uint64_t const key = Hash().add(seed).add(stream).value();
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

std::array<double, 4> to_normal(std::array<std::uint32_t, 4> const& words) {
  std::array<double, 4> values{};
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    double const radius = std::sqrt(-2.0 * std::log(to_positive_unit(words[pair])));
    double const angle = 2.0 * std::numbers::pi * to_positive_unit(words[pair + 1]);
    values[pair] = radius * std::cos(angle);
    values[pair + 1] = radius * std::sin(angle);
  }
  return values;
}

}  // namespace stratagem
