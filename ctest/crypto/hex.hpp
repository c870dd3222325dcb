#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/secret.hpp"

namespace stratagem::test {

inline std::vector<std::uint8_t> from_hex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

inline std::string to_hex(std::span<std::uint8_t const> bytes) {
  std::string text;
  for (auto const byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

template <std::size_t size>
std::array<std::uint8_t, size> array_of(std::string_view hex) {
  auto const bytes = from_hex(hex);
  std::array<std::uint8_t, size> found{};
  std::ranges::copy(bytes, found.begin());
  return found;
}

inline crypto::Secret secret_of(std::string_view hex) {
  crypto::Secret secret;
  std::ranges::copy(array_of<crypto::Secret::size>(hex), secret.bytes().begin());
  return secret;
}

}  // namespace stratagem::test
