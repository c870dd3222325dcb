#include "data/tokens/sequences.hpp"

#include <algorithm>
#include <utility>

#include "base/bad_data.hpp"
#include "base/contract.hpp"
#include "base/hash/hash.hpp"

namespace stratagem {

Sequences::Sequences(std::vector<TokenText> texts, std::int64_t length, std::int64_t vocabulary,
                     double bytes_per_token)
    : texts_(std::move(texts)),
      first_{0},
      length_(length),
      vocabulary_(vocabulary),
      bytes_per_token_(bytes_per_token) {
  expects(length > 0, "a sequence has tokens");
  for (auto const& text : texts_)
    first_.push_back(first_.back() + sequences_in(text.size(), length));
}

void Sequences::read(std::int64_t sequence, std::span<std::int64_t> tokens,
                     std::span<std::int64_t> labels) const {
  expects(0 <= sequence && sequence < size(), "a sequence of the texts");
  expects(std::ssize(tokens) == length_ && std::ssize(labels) == length_, "room for a sequence");
  auto const after = std::ranges::upper_bound(first_, sequence);
  auto const index = static_cast<std::size_t>(after - first_.begin()) - 1;
  auto const& text = texts_[index];
  auto const begin = (sequence - first_[index]) * length_;
  std::vector<std::int64_t> both(static_cast<std::size_t>(length_ + 1));
  text.read(begin, both);
  for (std::size_t i = 0; i < both.size(); ++i)
    if (both[i] >= vocabulary_)
      throw bad_data(text.name(),
                     str("a token beyond the vocabulary at byte ",
                         text.place_of(begin + static_cast<std::int64_t>(i))),
                     str("tokens below ", vocabulary_), std::to_string(both[i]),
                     "make the file again with the tokenizer of this vocabulary");
  std::copy_n(both.begin(), length_, tokens.begin());
  std::copy_n(both.begin() + 1, length_, labels.begin());
}

std::string Sequences::identity() const {
  Hash hash;
  hash.add(static_cast<std::uint64_t>(length_)).add(static_cast<std::uint64_t>(vocabulary_));
  for (auto const& text : texts_) hash.add(text.identity());
  return hash.hex();
}

}  // namespace stratagem
