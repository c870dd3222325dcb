#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/images/pixels.hpp"
#include "data/sampler.hpp"

namespace stratagem {

/// The largest label of images on disk.
inline constexpr std::int64_t most_label = 65535;

/// Which part of an image of this size is wanted.
using ChooseRegion = std::function<Region(ImageSize const&)>;

/// What one thread reads an image into; keeps its memory from image to image.
struct ReadBuffer {
  std::vector<std::byte> encoded;
  Pixels pixels;
};

/// The images of one set, on disk. Any number of threads may read at once, each into its own
/// buffer.
class ImageStore {
 public:
  virtual ~ImageStore() = default;

  /// What one image holds; 0: as many as are asked for.
  virtual std::int64_t channels() const = 0;
  /// Which images are best read together: those of a shard, or of one piece of a file.
  virtual Runs runs() const { return {}; }
  /// For messages: "flowers/train/rose/1.jpg".
  virtual std::string name(std::int64_t image) const = 0;
  /// What tells an image from others in the fingerprint of a set, wherever that stands.
  virtual std::string identity(std::int64_t image) const = 0;
  /// Of an image as it is stored [B].
  virtual std::int64_t stored_bytes(std::int64_t image) const = 0;
  /// Fills `bytes` with it. Error(bad_data) names the image.
  virtual void load(std::int64_t image, std::vector<std::byte>& bytes) const = 0;

  /// Reads into `buffer.pixels` the part of an image that `choose` takes, as RGB (3 channels) or
  /// grey (1). It may be smaller by a power of 2 in both directions, as long as it has the pixels
  /// of `least`. Error(bad_data) names the image.
  virtual void read(std::int64_t image, ChooseRegion const& choose, ImageSize const& least,
                    std::int64_t channels, ReadBuffer& buffer) const = 0;
};

}  // namespace stratagem
