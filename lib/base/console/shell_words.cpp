#include "base/console/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace stratagem {
namespace {

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
}

std::string quoted(std::string const& word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string text = "'";
  for (auto const c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string shell_words(std::span<std::string const> words) {
  std::string line;
  for (auto const& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

}  // namespace stratagem
