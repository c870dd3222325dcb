#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/crew.hpp"
#include "data/dataset.hpp"

namespace stratagem {

/// The least, the middle and the largest of some numbers.
struct Spread {
  std::int64_t least = 0, median = 0, most = 0;
};

/// What all images of a set on disk come to.
struct Survey {
  std::int64_t images = 0;
  Spread per_class;                  ///< images of one class, of classes that have any
  std::int64_t classes = 0;          ///< that have an image
  Spread height, width;              ///< [pixels]
  PixelStatistics pixels;            ///< every image counts alike, whatever its size
  std::int64_t turned = 0;           ///< that viewers turn, by Exif's orientation; here nobody does
  std::vector<std::string> damaged;  ///< what is wrong with images that cannot be read
};

/// Reads every image of `set`, as `channels` colours. The same numbers for any size of `crew`.
/// `told` is called with the number of images read, by the calling thread.
Survey survey(SampleSet const& set, std::int64_t channels, Crew& crew,
              std::function<void(std::int64_t done)> const& told);

}  // namespace stratagem
