#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/tokens/token_text.hpp"

namespace stratagem {

/// Sequences that a text of so many tokens is cut into: the last token is a label alone.
constexpr std::int64_t sequences_in(std::int64_t tokens, std::int64_t length) {
  return tokens > 0 ? (tokens - 1) / length : 0;
}

/// Texts cut into sequences of equal length, one after the other. A sequence lies within one text;
/// what is left over at a text's end is not used. Immutable; any number of threads may read.
class Sequences {
 public:
  /// `length` [tokens]; `vocabulary`: how many different tokens there are, counted from 0.
  /// `bytes_per_token`: of the text that the tokens stand for, on average; 0: unknown.
  Sequences(std::vector<TokenText> texts, std::int64_t length, std::int64_t vocabulary,
            double bytes_per_token);

  std::int64_t size() const { return first_.back(); }
  std::int64_t length() const { return length_; }
  std::int64_t vocabulary() const { return vocabulary_; }
  double bytes_per_token() const { return bytes_per_token_; }
  std::vector<TokenText> const& texts() const { return texts_; }

  /// The tokens of a sequence, and for each the token that follows it; both of length().
  /// Error(bad_data) for a token beyond the vocabulary, with its place.
  void read(std::int64_t sequence, std::span<std::int64_t> tokens,
            std::span<std::int64_t> labels) const;

  std::string identity() const;

 private:
  std::vector<TokenText> texts_;
  std::vector<std::int64_t> first_;  ///< sequence of each text, and one past the last
  std::int64_t length_, vocabulary_;
  double bytes_per_token_;
};

}  // namespace stratagem
