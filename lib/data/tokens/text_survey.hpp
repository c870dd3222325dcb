#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace stratagem {

/// What a text consists of.
struct TextSurvey {
  std::int64_t files = 0;
  std::int64_t tokens = 0;
  std::int64_t different = 0;  ///< tokens that occur
  double entropy = 0;          ///< [nats] of a token by itself: what a model that sees none has
  std::vector<std::string> damaged;  ///< per file: a token that the vocabulary does not have
};

/// Reads all tokens of the set's texts. `told` hears of tokens that were read. Error(bad_data) for
/// a file that cannot be read.
TextSurvey survey_text(SampleSet const& set, std::function<void(std::int64_t)> const& told);

}  // namespace stratagem
