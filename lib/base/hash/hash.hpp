#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace stratagem {

/// A 64-bit fingerprint of a sequence of values, the same on all machines with the same byte order.
/// Not cryptographic: it distinguishes plans, configurations and replicas.
class Hash {
 public:
  Hash& add(std::uint64_t value) {
    state_ = mix(state_ ^ value);
    ++length_;
    return *this;
  }
  Hash& add(std::span<std::byte const> bytes) {
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, 8);
      add(word);
    }
    std::uint64_t tail = 0;
    if (i < bytes.size()) std::memcpy(&tail, bytes.data() + i, bytes.size() - i);
    return add(tail).add(static_cast<std::uint64_t>(bytes.size()));
  }
  Hash& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }

  std::uint64_t value() const { return mix(state_ + length_); }
  /// 16 hexadecimal digits.
  std::string hex() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (int i = 0; i < 16; ++i)
      text[static_cast<std::size_t>(i)] = digits[value() >> (60 - 4 * i) & 15];
    return text;
  }

 private:
  /// A bijection of 64 bits: odd multiplications and shifts.
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93;
    return std::rotl(x, 23) * 0x9E3779B97F4A7C15;
  }

  std::uint64_t state_ = 0x243F6A8885A308D3;
  std::uint64_t length_ = 0;
};

}  // namespace stratagem
