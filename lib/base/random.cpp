#include "base/random.hpp"

#include <cmath>
#include <numbers>

#include "base/hash.hpp"

namespace stratagem {

CounterRandom::CounterRandom(std::uint64_t seed, std::string_view stream) {
  std::uint64_t const key = Hash().add(seed).add(stream).value();
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

std::array<std::uint32_t, 4> CounterRandom::block(std::uint64_t lo, std::uint64_t hi) const {
  std::array<std::uint32_t, 4> x{
      static_cast<std::uint32_t>(lo), static_cast<std::uint32_t>(lo >> 32),
      static_cast<std::uint32_t>(hi), static_cast<std::uint32_t>(hi >> 32)};
  std::uint32_t k0 = key_[0], k1 = key_[1];
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const p0 = std::uint64_t{0xD2511F53} * x[0];
    std::uint64_t const p1 = std::uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<std::uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return x;
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
