#include "base/portable_text.hpp"

#include <algorithm>
#include <cstdint>

namespace stratagem {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

std::string hex_escape(char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  auto const byte = static_cast<unsigned char>(c);
  return {'\\', 'x', digits[byte / 16], digits[byte % 16]};
}

std::string hex_text(std::span<std::byte const> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text = "0x";
  for (auto byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::size_t code_point_size(std::string_view text) {
  auto const lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return lead == 0 ? 0 : 1;
  std::size_t const size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  std::uint32_t code = lead & (0x7FU >> size);
  for (char const c : text.substr(1, size - 1)) {
    if (!is_continuation(c)) return 0;
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  }
  bool const overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  bool const surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : size;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    auto const size = code_point_size(text);
    if (size == 0 || is_control(text.front())) {
      out += hex_escape(text.front());
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

bool is_portable_text(std::string_view text) {
  while (!text.empty()) {
    auto const size = code_point_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace stratagem
