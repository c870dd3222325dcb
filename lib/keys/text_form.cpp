#include "keys/text_form.hpp"

#include <algorithm>

#include "base/portable_text.hpp"

namespace stratagem {
namespace {

constexpr std::size_t longest_shown = 60;  // bytes

void append_escaped(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    out += {'\\', c};
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_control(c)) {
    out += hex_escape(c);
  } else {
    out += c;
  }
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

std::string shown_key(std::string_view key) {
  bool const is_word =
      !key.empty() && key.size() <= longest_shown && std::ranges::all_of(key, is_word_character);
  return is_word ? std::string(key) : abridged(key);
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
