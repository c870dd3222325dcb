#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/philox.hpp"

namespace stratagem {

/// Counter-based random numbers: every value is a pure function of (key, counter), so any rank can
/// compute any part of a sequence by itself.
class CounterRandom {
 public:
  /// `stream` separates the uses of one seed: a parameter's name, "order", "dropout/classifier.2".
  CounterRandom(std::uint64_t seed, std::string_view stream);

  /// Four independent 32-bit words for counter (hi, lo).
  std::array<std::uint32_t, 4> block(std::uint64_t lo, std::uint64_t hi = 0) const {
    return philox(key_, lo, hi);
  }

  /// The `index`-th 32-bit word of the sequence `hi`.
  std::uint32_t word(std::uint64_t index, std::uint64_t hi = 0) const {
    return block(index / 4, hi)[index % 4];
  }
  /// 64 bits at `index` of the sequence `hi`.
  std::uint64_t word64(std::uint64_t index, std::uint64_t hi = 0) const {
    auto const words = block(index, hi);
    return static_cast<std::uint64_t>(words[0]) << 32 | words[1];
  }

  std::array<std::uint32_t, 2> key() const { return key_; }

 private:
  std::array<std::uint32_t, 2> key_;
};

/// In (0, 1], 32 bits.
constexpr double to_positive_unit(std::uint32_t word) {
  return (static_cast<double>(word) + 1.0) * 0x1p-32;
}

/// Four standard normal values from four words (Box-Muller).
std::array<double, 4> to_normal(std::array<std::uint32_t, 4> const& words);

}  // namespace stratagem
