#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stratagem {

/// SHA-256 (FIPS 180-4), used to recognise published files.
class Sha256 {
 public:
  Sha256& add(std::span<std::byte const> bytes);
  /// 64 hexadecimal digits; ends the computation.
  std::string finish();

 private:
  void compress(std::byte const* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::uint64_t length_ = 0;  ///< bytes so far
};

std::string sha256(std::span<std::byte const> bytes);

}  // namespace stratagem
