#include "data/augment.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace stratagem {
namespace {

constexpr int padding = 4;  // [pixels]

int offset(std::uint32_t word) {
  return static_cast<int>(word % (2 * padding + 1)) - padding;
}

constexpr double least_area = 0.08;                // of the image's
constexpr double widest = 4.0 / 3.0;               // width to height; the narrowest is its inverse
constexpr int attempts = 10;                       // to draw a part that lies in the image
constexpr std::uint64_t attempt_bit = 1ULL << 56;  // epochs are below

double between(double low, double high, std::uint32_t word) {
  return low + (high - low) * static_cast<double>(word) * 0x1p-32;
}

/// A whole number in [0, count).
std::int64_t below(std::int64_t count, std::uint32_t word) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(count) * word) >> 32);
}

/// The largest part in the middle whose edges are in the allowed proportion.
Region widest_middle(ImageSize const& size) {
  auto const [height, width] = size;
  auto const most_width = std::llround(static_cast<double>(height) * widest);
  auto const most_height = std::llround(static_cast<double>(width) * widest);
  Region region{.height = std::min<std::int64_t>(height, std::max<std::int64_t>(most_height, 1)),
                .width = std::min<std::int64_t>(width, std::max<std::int64_t>(most_width, 1))};
  region.top = (height - region.height) / 2;
  region.left = (width - region.width) / 2;
  return region;
}

/// Empty if the drawn part does not fit into the image.
std::optional<Region> draw(ImageSize const& size, std::array<std::uint32_t, 4> const& words) {
  auto const pixels = static_cast<double>(size.height) * static_cast<double>(size.width);
  auto const area = pixels * between(least_area, 1, words[0]);
  auto const ratio = std::exp(between(-std::log(widest), std::log(widest), words[1]));
  auto const width = std::llround(std::sqrt(area * ratio));
  auto const height = std::llround(std::sqrt(area / ratio));
  if (width < 1 || height < 1 || width > size.width || height > size.height) return std::nullopt;
  return Region{.top = below(size.height - height + 1, words[2]),
                .left = below(size.width - width + 1, words[3]),
                .height = height,
                .width = width};
}

}  // namespace

Move Augmenter::move(std::int64_t epoch, std::int64_t image) const {
  if (kind_ == Augmentation::none) return {};
  auto const words =
      random_.block(static_cast<std::uint64_t>(image), static_cast<std::uint64_t>(epoch));
  return {offset(words[0]), offset(words[1]), may_flip_ && (words[2] & 1) != 0};
}

Crop Augmenter::crop(std::int64_t epoch, std::int64_t image, ImageSize const& size,
                     std::int64_t input_size) const {
  if (kind_ == Augmentation::none) return {.region = middle(size, input_size)};
  auto const which = static_cast<std::uint64_t>(image), when = static_cast<std::uint64_t>(epoch);
  Crop crop{.region = widest_middle(size),
            .flip = may_flip_ && (random_.block(which, when)[0] & 1) != 0};
  for (std::uint64_t attempt = 1; attempt <= attempts; ++attempt)
    if (auto const drawn = draw(size, random_.block(which, when | attempt * attempt_bit))) {
      crop.region = *drawn;
      break;
    }
  return crop;
}

Region middle(ImageSize const& size, std::int64_t input_size) {
  if (size.height == input_size && size.width == input_size)
    return {.height = size.height, .width = size.width};
  auto const edge = std::max<std::int64_t>(std::min(size.height, size.width) * 7 / 8, 1);
  return {.top = (size.height - edge) / 2,
          .left = (size.width - edge) / 2,
          .height = edge,
          .width = edge};
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
