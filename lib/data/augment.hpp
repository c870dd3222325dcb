#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "data/data_config.hpp"
#include "data/images/pixels.hpp"

namespace stratagem {

/// How one image of fixed size is transformed before use.
struct Move {
  int right = 0;      ///< [pixels]
  int down = 0;       ///< [pixels]
  bool flip = false;  ///< mirrored left to right, before it is moved
};

/// The part of an image of any size that becomes the model's input.
struct Crop {
  Region region;
  bool flip = false;  ///< mirrored left to right
};

/// The usual augmentations, with a flip with probability 1/2 if mirrored images keep their label.
/// They depend only on (seed, epoch, image), not on the rank.
///  - Small images of one size: 4 pixels of zeros around the image, and a random crop of the
///    original size (He et al., "Deep residual learning for image recognition", 2016, §4.2).
///  - Photographs: a random part of 8 to 100 % of the area, with edges of 3:4 to 4:3 (Szegedy et
///    al., "Going deeper with convolutions", 2015, §6), drawn as torchvision's RandomResizedCrop.
class Augmenter {
 public:
  /// Leaves images as they are.
  Augmenter() : Augmenter(Augmentation::none, 0, false) {}
  Augmenter(Augmentation kind, std::uint64_t seed, bool may_flip)
      : kind_(kind), random_(seed, "augment"), may_flip_(may_flip) {}

  Move move(std::int64_t epoch, std::int64_t image) const;
  /// Without augmentation: middle().
  Crop crop(std::int64_t epoch, std::int64_t image, ImageSize const& size,
            std::int64_t input_size) const;

 private:
  Augmentation kind_;
  CounterRandom random_;
  bool may_flip_;
};

/// What is evaluated of an image: all of it if it has the input's size, else the square in its
/// middle with 7/8 of its shorter edge, as torchvision's Resize(256) and CenterCrop(224) leave it.
Region middle(ImageSize const& size, std::int64_t input_size);

/// One plane of `edge` x `edge` pixels, moved; zeros come in from outside.
void move_plane(std::uint8_t const* from, std::uint8_t* to, std::int64_t edge, Move const& move);

}  // namespace stratagem
