#include "data/images/encoded_image.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/contract.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "data/images/bad_image.hpp"
#include "data/images/jpeg.hpp"
#include "data/images/png.hpp"

namespace stratagem {
namespace {

using namespace std::string_view_literals;

constexpr char convert[] = "convert it to JPEG or PNG";

/// Bytes at the start of a file that tell its format.
struct Signature {
  std::size_t offset;
  std::string_view bytes;
  char const* format;
};

constexpr Signature other_formats[]{
    {0, "GIF8"sv, "a GIF"},      {8, "WEBP"sv, "a WebP"},      {0, "BM"sv, "a BMP"},
    {0, "II*\0"sv, "a TIFF"},    {0, "MM\0*"sv, "a TIFF"},     {4, "ftypheic"sv, "a HEIC"},
    {4, "ftypheix"sv, "a HEIC"}, {4, "ftyphevc"sv, "a HEIC"},  {4, "ftypmif1"sv, "a HEIC"},
    {4, "ftypmsf1"sv, "a HEIC"}, {4, "ftypavif"sv, "an AVIF"},
};

bool has(std::span<std::byte const> bytes, std::size_t offset, std::string_view wanted) {
  if (bytes.size() < offset + wanted.size()) return false;
  auto const part = bytes.subspan(offset, wanted.size());
  return std::equal(part.begin(), part.end(), wanted.begin(), [](std::byte byte, char character) {
    return byte == static_cast<std::byte>(character);
  });
}

Error other_format(std::span<std::byte const> bytes, std::string const& name) {
  if (bytes.empty()) return bad_image(name, "is empty", "a JPEG or PNG image", "0 bytes");
  for (auto const& known : other_formats)
    if (has(bytes, known.offset, known.bytes))
      return bad_image(name, str("is ", known.format, " image"), "JPEG or PNG",
                       hex_text(bytes.first(known.offset + known.bytes.size())), convert);
  return bad_image(name, "is neither JPEG nor PNG",
                   "a file that starts with 0xffd8ff or 0x89504e47",
                   hex_text(bytes.first(std::min<std::size_t>(bytes.size(), 8))), convert);
}

bool is_inside(Region const& region, ImageSize const& size) {
  return region.top >= 0 && region.left >= 0 && region.height >= 1 && region.width >= 1 &&
         region.top <= size.height - region.height && region.left <= size.width - region.width;
}

}  // namespace

EncodedImage::EncodedImage(std::span<std::byte const> bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  if (has(bytes, 0, "\xff\xd8\xff"sv))
    format_ = Format::jpeg;
  else if (has(bytes, 0, "\x89PNG\r\n\x1a\n"sv))
    format_ = Format::png;
  else
    throw other_format(bytes, name_);
  size_ = format_ == Format::jpeg ? jpeg_size(bytes_, name_) : png_size(bytes_, name_);
}

void EncodedImage::decode(Region const& region, ImageSize const& least, std::int64_t channels,
                          Pixels& out) const {
  expects(is_inside(region, size_), "the region is inside the image");
  expects(least.height >= 1 && least.width >= 1, "at least one pixel is wanted");
  expects(channels == 1 || channels == 3, "pixels are grey or RGB");
  if (format_ == Format::jpeg)
    decode_jpeg(bytes_, name_, region, least, channels, out);
  else
    decode_png(bytes_, name_, region, channels, out);
}

}  // namespace stratagem
