#include "data/images/bad_image.hpp"

#include <algorithm>

#include "base/bad_data.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t most_edge = 65500;
constexpr std::int64_t most_pixels = std::int64_t{1} << 28;

}  // namespace

Error bad_image(std::string const& name, std::string const& problem, std::string const& expected,
                std::string const& found, std::string const& cure) {
  return bad_data(name, problem, expected, found, cure);
}

void check_image_size(ImageSize const& size, std::string const& name) {
  if (std::max(size.height, size.width) > most_edge || size.height * size.width > most_pixels)
    throw bad_image(
        name, "is too large",
        str("edges of at most ", most_edge, " pixels and at most ", most_pixels, " pixels in all"),
        str(size.width, "x", size.height), "make it smaller");
}

}  // namespace stratagem
