#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "data/data_config.hpp"

namespace stratagem {

/// How one image is transformed before use.
struct Move {
  int right = 0;      ///< [pixels]
  int down = 0;       ///< [pixels]
  bool flip = false;  ///< mirrored left to right, before it is moved
};

/// The usual augmentation of small images (He et al., "Deep residual learning for image
/// recognition", 2016, §4.2): 4 pixels of zeros around the image, a random crop of the original
/// size, and a flip with probability 1/2 if mirrored images keep their label. Depends only on
/// (seed, epoch, image), not on the rank.
class Augmenter {
 public:
  Augmenter(Augmentation kind, std::uint64_t seed, bool may_flip)
      : kind_(kind), random_(seed, "augment"), may_flip_(may_flip) {}

  Move move(std::int64_t epoch, std::int64_t image) const;

 private:
  Augmentation kind_;
  CounterRandom random_;
  bool may_flip_;
};

/// One plane of `edge` x `edge` pixels, moved; zeros come in from outside.
void move_plane(std::uint8_t const* from, std::uint8_t* to, std::int64_t edge, Move const& move);

}  // namespace stratagem
