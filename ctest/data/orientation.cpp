#include "data/images/orientation.hpp"

#include <gtest/gtest.h>

#include "data/encoded_files.hpp"

namespace stratagem {
namespace {

using namespace std::string_literals;

int orientation_of(std::string const& file) {
  return stated_orientation(std::as_bytes(std::span(file)));
}

/// A TIFF header and one directory with the entry.
std::string exif(char orientation, bool big_endian) {
  if (big_endian) return "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0"s + orientation + "\0\0\0\0\0\0"s;
  return "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0"s + orientation + "\0\0\0\0\0\0\0"s;
}

std::string jpeg_of(std::int64_t edge) {
  return test::jpeg(ImageSize{edge, edge}, {.name = "plain", .channels = 3, .luma = {1, 1}});
}

std::string png_of(std::int64_t edge) {
  return test::png(test::picture({edge, edge}, 3),
                   {.name = "plain", .colour_type = PNG_COLOR_TYPE_RGB, .bits = 8});
}

std::string jpeg_with(std::string const& exif) {
  auto const plain = jpeg_of(8);
  auto const segment = "Exif\0\0"s + exif;
  return plain.substr(0, 2) + "\xFF\xE1\0"s + static_cast<char>(segment.size() + 2) + segment +
         plain.substr(2);
}

std::string png_with(std::string const& exif) {
  auto const plain = png_of(8);
  constexpr std::size_t behind_header = 8 + 25;
  return plain.substr(0, behind_header) + "\0\0\0"s + static_cast<char>(exif.size()) + "eXIf" +
         exif + "sums" + plain.substr(behind_header);
}

TEST(Orientation, IsReadFromBothFormatsAndOrders) {
  for (char const orientation : {1, 2, 3, 6, 8})
    for (bool const big_endian : {false, true}) {
      auto const data = exif(orientation, big_endian);
      EXPECT_EQ(orientation_of(jpeg_with(data)), orientation);
      EXPECT_EQ(orientation_of(png_with(data)), orientation);
    }
}

TEST(Orientation, IsTheUsualOneWithoutSoundExif) {
  EXPECT_EQ(orientation_of(jpeg_of(8)), 1);
  EXPECT_EQ(orientation_of(png_of(8)), 1);
  EXPECT_EQ(orientation_of(jpeg_with(exif(9, true))), 1);
  EXPECT_EQ(orientation_of(jpeg_with("no TIFF at all")), 1);
  for (auto const& whole : {jpeg_with(exif(6, true)), png_with(exif(6, false))})
    for (std::size_t size = 0; size < whole.size(); ++size) {
      auto const found = orientation_of(whole.substr(0, size));
      EXPECT_TRUE(found == 1 || found == 6) << size;
    }
}

}  // namespace
}  // namespace stratagem
