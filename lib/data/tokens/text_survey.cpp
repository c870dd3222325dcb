#include "data/tokens/text_survey.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.hpp"

namespace stratagem {

TextSurvey survey_text(SampleSet const& set, std::function<void(std::int64_t)> const& told) {
  constexpr std::int64_t at_once = 1 << 16;
  auto const vocabulary = set.text->vocabulary();
  TextSurvey found;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(vocabulary)), tokens;
  for (auto const& text : set.text->texts()) {
    ++found.files;
    bool damaged = false;
    for (std::int64_t begin = 0; begin < text.size(); begin += at_once) {
      tokens.resize(static_cast<std::size_t>(std::min(at_once, text.size() - begin)));
      text.read(begin, tokens);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] < vocabulary) {
          ++counts[static_cast<std::size_t>(tokens[i])];
        } else if (!std::exchange(damaged, true)) {
          found.damaged.push_back(str(text.name(), ": token ", tokens[i], " at byte ",
                                      text.place_of(begin + static_cast<std::int64_t>(i)),
                                      ", beyond a vocabulary of ", vocabulary));
        }
      }
      found.tokens += std::ssize(tokens);
      told(found.tokens);
    }
  }
  for (auto const count : counts) {
    if (count == 0) continue;
    ++found.different;
    auto const share = static_cast<double>(count) / static_cast<double>(found.tokens);
    found.entropy -= share * std::log(share);
  }
  return found;
}

}  // namespace stratagem
