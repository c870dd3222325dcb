#include "base/console/paragraph.hpp"

#include <string>
#include <vector>

#include "base/console/terminal.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

/// A number and its unit are one.
std::vector<std::string> words_of(std::string const& text) {
  std::vector<std::string> words;
  for (auto const& word : split(text, ' ')) {
    if (!words.empty() && is_quantity(words.back(), word))
      words.back() += " " + word;
    else
      words.push_back(word);
  }
  return words;
}

}  // namespace

std::string paragraph(std::string const& text) {
  constexpr std::size_t line_length = 79;
  std::string folded;
  std::size_t used = 0;
  for (auto const& word : words_of(text)) {
    bool const full = used > 0 && used + 1 + word.size() > line_length;
    if (full) used = 0;
    if (!folded.empty()) folded += full ? '\n' : ' ';
    used += word.size() + (used > 0 ? 1 : 0);
    folded += word;
  }
  return folded + "\n";
}

}  // namespace stratagem
