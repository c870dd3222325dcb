#pragma once

#include <cstddef>
#include <span>

namespace stratagem {

/// The orientation that Exif data of a JPEG or PNG file state: 2 to 8 for an image that viewers
/// turn or mirror, 1 where there is none, or the data are damaged.
int stated_orientation(std::span<std::byte const> file);

}  // namespace stratagem
