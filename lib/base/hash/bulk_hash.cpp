#include "base/hash/bulk_hash.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "base/hash/hash.hpp"

namespace stratagem {
namespace {

constexpr std::size_t lanes = 8, word = sizeof(std::uint64_t), stripe = lanes * word;
using Lanes = std::array<std::uint64_t, lanes>;

void take(Lanes& state, std::byte const* from) {
  Lanes words;
  std::memcpy(words.data(), from, stripe);
  for (std::size_t i = 0; i < lanes; ++i) {
    auto const x = state[i] ^ words[i];
    state[i] = std::rotl((x ^ x >> 32) * 0x9FB21C651E98DF25, 29);  // high bits affect low ones, too
  }
}

}  // namespace

std::uint64_t bulk_hash(std::span<std::byte const> bytes) {
  Lanes state;
  for (std::size_t i = 0; i < lanes; ++i) state[i] = (i + 1) * 0x9E3779B97F4A7C15;
  std::size_t at = 0;
  for (; at + stripe <= bytes.size(); at += stripe) take(state, bytes.data() + at);
  std::array<std::byte, stripe> rest{};
  if (at < bytes.size()) std::memcpy(rest.data(), bytes.data() + at, bytes.size() - at);
  take(state, rest.data());
  Hash hash;
  for (auto const lane : state) hash.add(lane);
  return hash.add(static_cast<std::uint64_t>(bytes.size())).value();
}

}  // namespace stratagem
