#include "data/augment.hpp"

#include <algorithm>

namespace stratagem {
namespace {

constexpr int padding = 4;  // [pixels]

int offset(std::uint32_t word) {
  return static_cast<int>(word % (2 * padding + 1)) - padding;
}

}  // namespace

Move Augmenter::move(std::int64_t epoch, std::int64_t image) const {
  if (kind_ == Augmentation::none) return {};
  auto const words =
      random_.block(static_cast<std::uint64_t>(image), static_cast<std::uint64_t>(epoch));
  return {offset(words[0]), offset(words[1]), may_flip_ && (words[2] & 1) != 0};
}

void move_plane(std::uint8_t const* from, std::uint8_t* to, std::int64_t edge, Move const& move) {
  std::fill(to, to + edge * edge, std::uint8_t{0});
  auto const first_row = std::max<std::int64_t>(0, move.down);
  auto const end_row = std::min(edge, edge + move.down);
  auto const first = std::max<std::int64_t>(0, move.right);
  auto const end = std::min(edge, edge + move.right);
  for (auto row = first_row; row < end_row; ++row) {
    auto const* source = from + (row - move.down) * edge;
    auto* target = to + row * edge;
    if (move.flip)
      std::reverse_copy(source + edge - (end - move.right), source + edge - (first - move.right),
                        target + first);
    else
      std::copy(source + first - move.right, source + end - move.right, target + first);
  }
}

}  // namespace stratagem
