#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/images/pixels.hpp"

namespace stratagem {

/// What the header states. Error(bad_data) if the file is truncated or a checksum is wrong,
/// anywhere in it; if the image is too large, animated or has 16 bits per channel; or if the file
/// is too short for an image of its size.
ImageSize png_size(std::span<std::byte const> bytes, std::string const& name);

/// EncodedImage::decode() of a PNG that png_size() accepts. Transparency and gamma are ignored, and
/// grey is ITU-R 601's luma: the pixels are those of Pillow's convert("RGB") and convert("L").
void decode_png(std::span<std::byte const> bytes, std::string const& name, Region const& region,
                std::int64_t channels, Pixels& out);

}  // namespace stratagem
