#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/random.hpp"
#include "data/dataset.hpp"

namespace stratagem {

/// The random numbers of one image, in sequence.
class Draws {
 public:
  Draws(CounterRandom const& random, std::uint64_t image) : random_(random), image_(image) {}

  std::uint32_t word() {
    if (used_ % 4 == 0) block_ = random_.block(used_ / 4, image_);
    return block_[used_++ % 4];
  }
  /// A whole number in [lo, hi].
  int between(int lo, int hi) {
    auto const choices = static_cast<std::uint64_t>(hi - lo + 1);
    return lo + static_cast<int>(word() * choices >> 32);
  }

 private:
  CounterRandom const& random_;
  std::uint64_t image_;
  std::uint64_t used_ = 0;
  std::array<std::uint32_t, 4> block_{};
};

/// Adds a number in [-strength, strength] to each pixel, limited to [0, 255].
void add_noise(Draws& draws, int strength, std::span<std::uint8_t> pixels);

struct ImageShape {
  std::int64_t channels;
  std::int64_t edge;  ///< [pixels]
};

/// Paints one image [channels, edge, edge] of class `label`.
using Painter = void (*)(Draws& draws, int label, std::span<std::uint8_t> pixels);

/// `count` images of ten classes. `stream` names the set: different names give different images.
SampleSet paint_set(std::string_view stream, std::int64_t count, ImageShape const& shape,
                    Painter painter);

}  // namespace stratagem
