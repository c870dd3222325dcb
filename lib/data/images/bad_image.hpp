#pragma once

#include <string>

#include "base/error.hpp"
#include "data/images/pixels.hpp"

namespace stratagem {

/// Error(bad_data) about one image: "name: problem (expected x, found y); cure".
Error bad_image(std::string const& name, std::string const& problem, std::string const& expected,
                std::string const& found, std::string const& cure = "replace or remove the image");

/// Error(bad_data) if decoding would take unreasonable memory: an edge of more than 65500 pixels,
/// which is libjpeg's limit, or more than 2^28 pixels.
void check_image_size(ImageSize const& size, std::string const& name);

}  // namespace stratagem
