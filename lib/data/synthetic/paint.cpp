#include "data/synthetic/paint.hpp"

#include <algorithm>

#include <ATen/ATen.h>

namespace stratagem {
namespace {

constexpr std::uint64_t key = 20250518;  // of all procedural data; independent of a run's seed
constexpr int classes = 10;

}  // namespace

void add_noise(Draws& draws, int strength, std::span<std::uint8_t> pixels) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i, bits >>= 8) {
    if (i % 4 == 0) bits = draws.word();
    int const noise = (static_cast<int>(bits & 255) * (2 * strength + 1) >> 8) - strength;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(pixels[i] + noise, 0, 255));
  }
}

SampleSet paint_set(std::string_view stream, std::int64_t count, ImageShape const& shape,
                    Painter painter) {
  SampleSet set{at::empty({count, shape.channels, shape.edge, shape.edge}, at::kByte),
                at::arange(count).remainder(classes)};
  CounterRandom const random(key, stream);
  auto const bytes = static_cast<std::size_t>(shape.channels * shape.edge * shape.edge);
  auto* pixels = set.images.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < count; ++i, pixels += bytes) {
    Draws draws(random, static_cast<std::uint64_t>(i));
    painter(draws, static_cast<int>(i % classes), {pixels, bytes});
  }
  return set;
}

}  // namespace stratagem
