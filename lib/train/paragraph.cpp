#include "train/paragraph.hpp"

#include "base/text.hpp"

namespace stratagem {

std::string paragraph(std::string const& text) {
  constexpr std::size_t line_length = 79;
  std::string folded;
  std::size_t used = 0;
  for (auto const& word : split(text, ' ')) {
    bool const full = used > 0 && used + 1 + word.size() > line_length;
    if (full) used = 0;
    if (!folded.empty()) folded += full ? '\n' : ' ';
    used += word.size() + (used > 0 ? 1 : 0);
    folded += word;
  }
  return folded + "\n";
}

}  // namespace stratagem
