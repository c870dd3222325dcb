#pragma once

#include <array>
#include <cstdint>

namespace stratagem {

/// Four independent 32-bit words for each counter: Philox-4x32-10 of Salmon, Moraes, Dror, Shaw,
/// "Parallel random numbers: as easy as 1, 2, 3", SC'11. The same on host and device.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key, std::uint64_t lo,
                                              std::uint64_t hi) {
  std::uint32_t x0 = static_cast<std::uint32_t>(lo), x1 = static_cast<std::uint32_t>(lo >> 32);
  std::uint32_t x2 = static_cast<std::uint32_t>(hi), x3 = static_cast<std::uint32_t>(hi >> 32);
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const p0 = std::uint64_t{0xD2511F53} * x0;
    std::uint64_t const p1 = std::uint64_t{0xCD9E8D57} * x2;
    x0 = static_cast<std::uint32_t>(p1 >> 32) ^ x1 ^ k0;
    x1 = static_cast<std::uint32_t>(p1);
    x2 = static_cast<std::uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {x0, x1, x2, x3};
}

/// In [0, 1), 24 bits.
constexpr float to_unit_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24F;
}

}  // namespace stratagem
