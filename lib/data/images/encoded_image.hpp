#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/images/pixels.hpp"

namespace stratagem {

/// A JPEG or PNG file's content in memory, whose header was read. The first bytes tell which it is,
/// not the name. An orientation that Exif data states is not applied. Any number of threads may
/// decode at once, each into its own Pixels.
class EncodedImage {
 public:
  /// `name` is for messages. The bytes must outlive the object. Error(bad_data) if the image is of
  /// another format or kind, is too large, or if its header is damaged.
  EncodedImage(std::span<std::byte const> bytes, std::string name);

  ImageSize size() const { return size_; }

  /// Writes `region`, which must be inside the image, to `out` as RGB (channels 3) or grey
  /// (channels 1). A JPEG may come out smaller by a factor of 2, 4 or 8 in both directions, as long
  /// as both edges still have the pixels of `least`: the decoder's own scaling costs less than
  /// decoding all pixels. The result then covers the region as nearly as whole pixels allow.
  /// Without scaling, the pixels are those of a decoded whole image. Error(bad_data) if the part
  /// of the file that had to be read is truncated or corrupt.
  void decode(Region const& region, ImageSize const& least, std::int64_t channels,
              Pixels& out) const;

 private:
  enum class Format { jpeg, png };

  std::span<std::byte const> bytes_;
  std::string name_;
  Format format_;
  ImageSize size_;
};

}  // namespace stratagem
