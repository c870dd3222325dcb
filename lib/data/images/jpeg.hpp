#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/images/pixels.hpp"

namespace stratagem {

/// What the header states. Error(bad_data) if it is damaged; if the image is too large, has CMYK
/// colours or more than 8 bits; or if the file is too short for an image of its size.
ImageSize jpeg_size(std::span<std::byte const> bytes, std::string const& name);

/// EncodedImage::decode() of a JPEG that jpeg_size() accepts. Decodes few pixels outside `region`,
/// and stops behind its last row.
void decode_jpeg(std::span<std::byte const> bytes, std::string const& name, Region const& region,
                 ImageSize const& least, std::int64_t channels, Pixels& out);

}  // namespace stratagem
