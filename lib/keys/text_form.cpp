#include "keys/text_form.hpp"

#include <algorithm>
#include <cstdint>

namespace stratagem {
namespace {

constexpr std::size_t longest_shown = 60;  // bytes

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

void append_hex(std::string& out, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  auto const byte = static_cast<unsigned char>(c);
  out += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
}

void append_escaped(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    out += {'\\', c};
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_control(c)) {
    append_hex(out, c);
  } else {
    out += c;
  }
}

/// Number of bytes of the code point at the start of `text`; 0 if there is none.
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

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

std::string yaml_quoted(std::string_view text) {
  std::string out = "\"";
  for (char const c : text) append_escaped(out, c);
  return out + '"';
}

std::string abridged(std::string_view text) {
  if (text.size() <= longest_shown) return yaml_quoted(text);
  auto end = longest_shown;
  while (end > 0 && is_continuation(text[end])) --end;
  return yaml_quoted(text.substr(0, end)) + "...";
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    auto const size = code_point_size(text);
    if (size == 0 || is_control(text.front())) {
      append_hex(out, text.front());
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string shown_key(std::string_view key) {
  bool const is_word =
      !key.empty() && key.size() <= longest_shown && std::ranges::all_of(key, is_word_character);
  return is_word ? std::string(key) : abridged(key);
}

bool is_portable_text(std::string_view text) {
  while (!text.empty()) {
    auto const size = code_point_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::size_t find_foreign_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    auto const size = code_point_size(text.substr(at));
    char const c = text[at];
    if (size == 0 || (is_control(c) && c != '\t' && c != '\n' && c != '\r')) return at;
    at += size;
  }
  return std::string_view::npos;
}

}  // namespace stratagem
