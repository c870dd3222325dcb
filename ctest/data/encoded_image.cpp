#include "data/images/encoded_image.hpp"

#include <algorithm>
#include <array>
#include <cstdio>  // jpeglib.h needs it
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <jpeglib.h>
#include <png.h>

#include "base/text.hpp"
#include "data/encoded_files.hpp"
#include "data/files.hpp"

namespace stratagem {
namespace {

using namespace test;
using namespace std::string_view_literals;

constexpr ImageSize unscaled{1 << 20, 1 << 20};

EncodedImage image_of(std::string const& content) {
  return {std::as_bytes(std::span(content)), "rose/1.jpg"};
}

Region whole(ImageSize const& size) {
  return {0, 0, size.height, size.width};
}

Pixels decoded(std::string const& content, Region const& region, std::int64_t channels,
               ImageSize const& least = unscaled) {
  Pixels out;
  image_of(content).decode(region, least, channels, out);
  return out;
}

Pixels decoded(std::string const& content, std::int64_t channels = 3) {
  return decoded(content, whole(image_of(content).size()), channels);
}

Pixels part_of(Pixels const& image, Region const& region) {
  Pixels part;
  part.resize(region.height, region.width, image.channels);
  for (std::int64_t y = 0; y < region.height; ++y)
    std::copy_n(image.row(region.top + y) + region.left * image.channels, part.row_values(),
                part.row(y));
  return part;
}

testing::AssertionResult same(Pixels const& found, Pixels const& expected) {
  auto const shape = [](Pixels const& p) { return str(p.height, "x", p.width, "x", p.channels); };
  if (shape(found) != shape(expected))
    return testing::AssertionFailure() << shape(found) << " instead of " << shape(expected);
  auto const at = std::mismatch(found.values.begin(), found.values.end(), expected.values.begin());
  if (at.first == found.values.end()) return testing::AssertionSuccess();
  auto const value = at.first - found.values.begin();
  return testing::AssertionFailure() << "row " << value / found.row_values() << ", column "
                                     << value % found.row_values() / found.channels << ": "
                                     << int{*at.first} << " instead of " << int{*at.second};
}

/// Edges at regular distances and near the borders.
std::vector<Region> regions_of(ImageSize const& size) {
  std::vector<Region> regions{whole(size)};
  auto const cuts = [](std::int64_t length) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (std::int64_t begin = 0; begin < length; begin += begin < 20 ? 1 : 5)
      for (std::int64_t end = begin + 1; end <= length; end += end - begin < 3 ? 1 : 9)
        ranges.emplace_back(begin, end);
    return ranges;
  };
  for (auto const& [top, bottom] : cuts(size.height))
    regions.push_back({top, size.width / 3, bottom - top, size.width / 2 + 1});
  for (auto const& [left, right] : cuts(size.width))
    regions.push_back({size.height / 3, left, size.height / 2 + 1, right - left});
  return regions;
}

// JPEG

constexpr JpegKind jpeg_kinds[]{
    {"4:4:4", 3, {1, 1}},
    {"4:2:2", 3, {2, 1}},
    {"4:2:0", 3, {2, 2}},
    {"4:4:0", 3, {1, 2}},
    {"4:1:1", 3, {4, 1}},
    {"4:1:0", 3, {4, 2}},
    {"grey", 1, {1, 1}},
    {"grey with factors of 2", 1, {2, 2}},
    {"RGB", 3, {1, 1}, Scans::one, JCS_RGB},
    {"4:2:0 with restarts", 3, {2, 2}, Scans::one, JCS_YCbCr, false, 1},
    {"4:2:0, arithmetic", 3, {2, 2}, Scans::one, JCS_YCbCr, true},
    {"4:2:0 in three scans", 3, {2, 2}, Scans::of_each_channel},
    {"4:2:0, progressive", 3, {2, 2}, Scans::progressive},
    {"4:2:2, progressive", 3, {2, 1}, Scans::progressive},
    {"4:2:0, start of a progressive", 3, {2, 2}, Scans::progressive_start},
    {"grey, progressive", 1, {1, 1}, Scans::progressive},
};

/// The whole image as libjpeg decodes it at 1/`factor`.
Pixels reference(std::string const& content, std::int64_t channels, unsigned factor = 1) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<unsigned char const*>(content.data()), content.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.scale_num = 1;
  info.scale_denom = factor;
  jpeg_start_decompress(&info);
  Pixels image;
  image.resize(info.output_height, info.output_width, channels);
  while (info.output_scanline < info.output_height) {
    auto* row = image.row(info.output_scanline);
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return image;
}

/// `region` in an image scaled by 1/`factor`, to the nearest whole pixels.
Region scaled(Region const& region, std::int64_t factor, Pixels const& image) {
  auto const nearest = [&](std::int64_t edge) { return (edge + factor / 2) / factor; };
  auto const top = nearest(region.top), left = nearest(region.left);
  return {top, left, std::min(nearest(region.top + region.height), image.height) - top,
          std::min(nearest(region.left + region.width), image.width) - left};
}

void patch(std::string& content, std::size_t at, std::string_view bytes) {
  content.replace(at, bytes.size(), bytes);
}

std::size_t frame_header(std::string const& jpeg_content) {
  return jpeg_content.find("\xff\xc0\x00\x11"sv);
}

std::string jpeg_that_states(ImageSize const& size) {
  auto content = jpeg(ImageSize{16, 16}, jpeg_kinds[0]);
  auto const low = [](std::int64_t value) { return static_cast<char>(value & 255); };
  patch(
      content, frame_header(content) + 5,
      std::string{low(size.height >> 8), low(size.height), low(size.width >> 8), low(size.width)});
  return content;
}

TEST(EncodedImage, DecodesAWholeJpegAsLibjpegDoes) {
  for (auto const& kind : jpeg_kinds)
    for (ImageSize const size : {ImageSize{61, 83}, {64, 48}, {1, 1}, {1, 37}, {37, 1}, {2, 3}}) {
      SCOPED_TRACE(str(kind.name, ", ", size.height, "x", size.width));
      auto const content = jpeg(size, kind);
      EXPECT_EQ(image_of(content).size(), size);
      EXPECT_TRUE(same(decoded(content, 3), reference(content, 3)));
      EXPECT_TRUE(same(decoded(content, 1), reference(content, 1)));
    }
}

TEST(EncodedImage, DecodesAnyRegionOfAJpegAsInTheWhole) {
  for (auto const& kind : jpeg_kinds)
    for (ImageSize const size : {ImageSize{61, 83}, {64, 48}, {3, 40}, {40, 3}}) {
      auto const content = jpeg(size, kind);
      for (std::int64_t const channels : {1, 3}) {
        auto const image = reference(content, channels);
        for (auto const& region : regions_of(size))
          ASSERT_TRUE(same(decoded(content, region, channels), part_of(image, region)))
              << kind.name << ", region " << region.top << " " << region.left << " "
              << region.height << " " << region.width << " of " << size.height << "x" << size.width
              << "x" << channels;
      }
    }
}

TEST(EncodedImage, DecodesAnyScaledRegionOfAJpegAsInTheWhole) {
  ImageSize const size{75, 101};
  for (auto const& kind : jpeg_kinds) {
    auto const content = jpeg(size, kind);
    std::array const images{reference(content, 3, 2), reference(content, 3, 4),
                            reference(content, 3, 8)};
    for (std::size_t i = 0; i < images.size(); ++i) {
      std::int64_t const factor = 2 << i;
      for (auto const& region : regions_of(size)) {
        auto const part = scaled(region, factor, images[i]);
        auto const coarser = i < 2 ? scaled(region, 2 * factor, images[i + 1]) : Region{};
        // The twice as coarse result would do, too.
        if (coarser.height >= part.height && coarser.width >= part.width) continue;
        if (part.height < 1 || part.width < 1) continue;
        auto const found = decoded(content, region, 3, {part.height, part.width});
        ASSERT_TRUE(same(found, part_of(images[i], part)))
            << kind.name << ", 1/" << factor << ", region " << region.top << " " << region.left
            << " " << region.height << " " << region.width;
      }
    }
  }
}

TEST(EncodedImage, ScalesAJpegAsFarAsTheLeastPixelsAllow) {
  auto const content = jpeg(ImageSize{64, 128}, jpeg_kinds[2]);
  auto const sizes = [&](Region const& region, ImageSize const& least) {
    auto const found = decoded(content, region, 3, least);
    return ImageSize{found.height, found.width};
  };
  Region const all{0, 0, 64, 128};
  EXPECT_EQ(sizes(all, {64, 128}), (ImageSize{64, 128}));
  EXPECT_EQ(sizes(all, {33, 1}), (ImageSize{64, 128}));
  EXPECT_EQ(sizes(all, {32, 1}), (ImageSize{32, 64}));
  EXPECT_EQ(sizes(all, {1, 33}), (ImageSize{32, 64}));
  EXPECT_EQ(sizes(all, {16, 32}), (ImageSize{16, 32}));
  EXPECT_EQ(sizes(all, {8, 16}), (ImageSize{8, 16}));
  EXPECT_EQ(sizes(all, {1, 1}), (ImageSize{8, 16}));
  EXPECT_EQ(sizes(all, {100, 1}), (ImageSize{64, 128}));
  EXPECT_EQ(sizes({3, 5, 20, 40}, {10, 20}), (ImageSize{10, 20}));
  EXPECT_EQ(sizes({3, 5, 20, 40}, {11, 20}), (ImageSize{20, 40}));
  EXPECT_EQ(sizes({1, 1, 1, 1}, {1, 1}), (ImageSize{1, 1}));
}

TEST(EncodedImage, ReadsAJpegAsFarAsTheRegionNeeds) {
  for (auto const& kind : {jpeg_kinds[0], jpeg_kinds[2]}) {
    SCOPED_TRACE(kind.name);
    auto const content = jpeg(ImageSize{160, 80}, kind);
    auto const half = content.substr(0, content.size() / 2);
    Region const upper{10, 3, 40, 70};
    EXPECT_TRUE(same(decoded(half, upper, 3), part_of(reference(content, 3), upper)));
    for (Region const& region : {Region{10, 3, 150, 70}, Region{150, 0, 10, 10}})
      expect_bad_data([&] { decoded(half, region, 3); }, "is truncated or corrupt");
  }
}

/// Cameras and editors leave bytes behind the last row's data, or append whole files.
TEST(EncodedImage, IgnoresWhatFollowsTheImage) {
  auto const content = jpeg(ImageSize{20, 20}, jpeg_kinds[2]);
  auto const image = reference(content, 3);
  EXPECT_TRUE(same(decoded(content + "tail"), image));
  EXPECT_TRUE(same(decoded(content + content), image));
  auto const end = content.size() - 2;
  EXPECT_TRUE(same(decoded(content.substr(0, end) + "tail" + content.substr(end)), image));
}

TEST(EncodedImage, AcceptsOddHeadersOfJpegs) {
  auto content = jpeg(ImageSize{20, 20}, jpeg_kinds[2]);
  auto const image = reference(content, 3);
  patch(content, content.find("JFIF") + 5, "\x03");
  EXPECT_TRUE(same(decoded(content), image));
  auto const scan = content.find("\xff\xda"sv);
  ASSERT_EQ(content[scan + 12], 63);  // the last coefficient of a baseline scan
  patch(content, scan + 12, "\x00"sv);
  EXPECT_TRUE(same(decoded(content), image));
}

TEST(EncodedImage, RefusesACutJpeg) {
  for (auto const& kind : jpeg_kinds) {
    if (kind.arithmetic) continue;  // a decoder may read any number of zeros behind the end
    auto const content = jpeg(ImageSize{33, 41}, kind);
    for (std::size_t length = 3; length < content.size() - 2; ++length) {
      SCOPED_TRACE(str(kind.name, ", ", length, " of ", content.size(), " bytes"));
      expect_bad_data([&] { decoded(content.substr(0, length)); },
                      "rose/1.jpg: is truncated or corrupt (expected ");
    }
  }
}

TEST(EncodedImage, RefusesADamagedJpegOrDecodesIt) {
  Noise noise;
  for (auto const& kind : jpeg_kinds) {
    auto const content = jpeg(ImageSize{33, 41}, kind);
    int refused = 0;
    for (int trial = 0; trial < 300; ++trial) {
      auto damaged = content;
      for (int byte = 0; byte < 3; ++byte)
        damaged[noise.below(static_cast<unsigned>(content.size()))] ^=
            static_cast<char>(1 + noise.below(255));
      try {
        auto const image = image_of(damaged);
        auto const size = image.size();
        if (size.height * size.width > 1 << 20) continue;
        Pixels out;
        image.decode(whole(size), {8, 8}, 3, out);
      } catch (Error const& error) {
        ASSERT_EQ(error.code(), ExitCode::bad_data) << error.what();
        ++refused;
      }
    }
    EXPECT_GE(refused, 30) << kind.name;
  }
}

TEST(EncodedImage, RefusesALostRestartMarker) {
  auto content = jpeg(ImageSize{64, 64}, {"", 3, {2, 2}, Scans::one, JCS_YCbCr, false, 1});
  auto const marker = content.find("\xff\xd1"sv);
  ASSERT_NE(marker, std::string::npos);
  content.erase(marker, 2);
  expect_bad_data([&] { decoded(content); }, "is truncated or corrupt (expected a whole JPEG, ");
}

TEST(EncodedImage, RefusesKindsOfJpegByName) {
  for (auto const colours : {JCS_CMYK, JCS_YCCK}) {
    auto const content = jpeg(ImageSize{9, 9}, {"", 4, {1, 1}, Scans::one, colours});
    expect_bad_data([&] { image_of(content); },
                    "rose/1.jpg: has CMYK colours (expected grey, YCbCr or RGB, found CMYK); "
                    "convert it to RGB");
  }
  auto const two_channels = jpeg(ImageSize{9, 9}, {"", 2, {1, 1}});
  expect_bad_data([&] { image_of(two_channels); },
                  "has unknown colours (expected grey, YCbCr or RGB, found 2 channels)");
  auto content = jpeg(ImageSize{9, 9}, jpeg_kinds[0]);
  auto const frame = frame_header(content);
  patch(content, frame + 4, "\x0c");
  expect_bad_data([&] { image_of(content); },
                  "has 12 bits per channel (expected 8, found 12); convert it to 8 bits");
  patch(content, frame, "\xff\xc3");  // lossless
  expect_bad_data([&] { image_of(content); }, "is a JPEG of an unusual kind (expected baseline");
}

TEST(EncodedImage, RefusesASizeThatAJpegCannotHave) {
  constexpr char too_large[] = "is too large (expected edges of at most 65500 pixels";
  for (ImageSize const size : {ImageSize{1, 65501}, {65535, 1}, {16385, 16384}, {65500, 65500}})
    expect_bad_data([&] { image_of(jpeg_that_states(size)); }, too_large);
  // 2^28 pixels are allowed, but not in these few bytes.
  expect_bad_data(
      [&] {
        image_of(jpeg_that_states({16384, 16384}));
      },
      "is truncated or corrupt (expected data of 16384x16384 pixels, found");
  expect_bad_data([&] { image_of(jpeg_that_states({0, 16})); }, "is truncated or corrupt");
}

// PNG

constexpr PngKind png_kinds[]{
    {"grey 1", PNG_COLOR_TYPE_GRAY, 1},
    {"grey 2", PNG_COLOR_TYPE_GRAY, 2},
    {"grey 4", PNG_COLOR_TYPE_GRAY, 4, false, true},
    {"grey 8", PNG_COLOR_TYPE_GRAY, 8},
    {"grey 8 tRNS", PNG_COLOR_TYPE_GRAY, 8, false, true},
    {"grey 1 interlaced", PNG_COLOR_TYPE_GRAY, 1, true, true},
    {"grey and alpha", PNG_COLOR_TYPE_GRAY_ALPHA, 8},
    {"grey and alpha interlaced", PNG_COLOR_TYPE_GRAY_ALPHA, 8, true},
    {"RGB", PNG_COLOR_TYPE_RGB, 8},
    {"RGB tRNS", PNG_COLOR_TYPE_RGB, 8, false, true},
    {"RGB interlaced", PNG_COLOR_TYPE_RGB, 8, true},
    {"RGBA", PNG_COLOR_TYPE_RGB_ALPHA, 8},
    {"RGBA interlaced", PNG_COLOR_TYPE_RGB_ALPHA, 8, true},
    {"palette 1", PNG_COLOR_TYPE_PALETTE, 1},
    {"palette 2", PNG_COLOR_TYPE_PALETTE, 2, true},
    {"palette 4 tRNS", PNG_COLOR_TYPE_PALETTE, 4, false, true},
    {"palette 8", PNG_COLOR_TYPE_PALETTE, 8},
    {"palette 8 tRNS interlaced", PNG_COLOR_TYPE_PALETTE, 8, true, true},
};

Pixels samples(ImageSize const& size, PngKind const& kind) {
  auto image = picture(size, samples_of(kind));
  for (auto& value : image.values) value = static_cast<std::uint8_t>(value >> (8 - kind.bits));
  return image;
}

std::array<unsigned, 3> colour_of(std::uint8_t const* sample, PngKind const& kind) {
  if (kind.colour_type == PNG_COLOR_TYPE_PALETTE) {
    auto const entry = palette_entry(*sample);
    return {entry.red, entry.green, entry.blue};
  }
  if (samples_of(kind) >= 3) return {sample[0], sample[1], sample[2]};
  auto const grey = *sample * 255u / ((1u << kind.bits) - 1);
  return {grey, grey, grey};
}

Pixels expected_of(Pixels const& given, PngKind const& kind, std::int64_t channels) {
  Pixels image;
  image.resize(given.height, given.width, channels);
  for (std::int64_t i = 0; i < given.height * given.width; ++i) {
    auto const rgb = colour_of(given.values.data() + i * given.channels, kind);
    auto const luma = (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 0x8000) >> 16;
    for (std::int64_t c = 0; c < channels; ++c)
      image.values[static_cast<std::size_t>(i * channels + c)] =
          static_cast<std::uint8_t>(channels == 1 ? luma : rgb[static_cast<std::size_t>(c)]);
  }
  return image;
}

std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 255);
  return text;
}

std::string chunk(std::string const& type, std::string const& data) {
  auto const checked = type + data;
  auto const checksum =
      crc32(0, reinterpret_cast<Bytef const*>(checked.data()), static_cast<uInt>(checked.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + checked +
         big_endian(static_cast<std::uint32_t>(checksum));
}

std::string deflated(std::string const& content) {
  std::string packed(compressBound(content.size()), '\0');
  auto length = static_cast<uLongf>(packed.size());
  compress(reinterpret_cast<Bytef*>(packed.data()), &length,
           reinterpret_cast<Bytef const*>(content.data()), content.size());
  return packed.substr(0, length);
}

std::string const png_signature = "\x89PNG\r\n\x1a\n";

std::string png_header(std::uint32_t width, std::uint32_t height, char bits = 8,
                       char colour_type = PNG_COLOR_TYPE_GRAY) {
  return png_signature + chunk("IHDR", big_endian(width) + big_endian(height) + bits + colour_type +
                                           std::string(3, '\0'));
}

TEST(EncodedImage, DecodesAnyRegionOfAPng) {
  for (auto const& kind : png_kinds)
    for (ImageSize const size : {ImageSize{61, 83}, {1, 1}, {3, 40}, {40, 3}}) {
      auto const given = samples(size, kind);
      auto const content = png(given, kind);
      EXPECT_EQ(image_of(content).size(), size);
      for (std::int64_t const channels : {1, 3}) {
        auto const image = expected_of(given, kind, channels);
        auto const regions = regions_of(size);
        for (std::size_t i = 0; i < regions.size(); i += i < 20 ? 1 : 7)
          ASSERT_TRUE(same(decoded(content, regions[i], channels), part_of(image, regions[i])))
              << kind.name << ", region " << i << " of " << size.height << "x" << size.width;
      }
    }
}

TEST(EncodedImage, NeverScalesAPng) {
  auto const given = samples({64, 64}, png_kinds[8]);
  EXPECT_TRUE(same(decoded(png(given, png_kinds[8]), {0, 0, 64, 64}, 3, {1, 1}), given));
}

TEST(EncodedImage, RefusesADamagedPng) {
  for (auto const& kind : {png_kinds[8], png_kinds[17]}) {
    auto const content = png(samples({9, 11}, kind), kind);
    EXPECT_TRUE(same(decoded(content + "tail"), decoded(content)));
    for (std::size_t at = png_signature.size(); at < content.size(); ++at) {
      SCOPED_TRACE(at);
      auto damaged = content;
      damaged[at] ^= 0x20;
      expect_bad_data([&] { image_of(damaged); }, "rose/1.jpg: is truncated or corrupt (expected ");
      expect_bad_data([&] { image_of(content.substr(0, at)); },
                      "is truncated or corrupt (expected a PNG up to its last chunk, IEND, found ");
    }
  }
}

/// Whose checksums of chunks are right.
TEST(EncodedImage, RefusesAPngWhosePixelsAreWrong) {
  auto const with_data = [](std::string const& data) {
    return png_header(8, 8) + chunk("IDAT", data) + chunk("IEND", "");
  };
  auto const packed = deflated(std::string(8 * (1 + 8), '\0'));
  EXPECT_TRUE(same(decoded(with_data(packed), 1), Pixels{8, 8, 1, std::vector<std::uint8_t>(64)}));
  for (auto const& data : {std::string(), std::string(20, '\xff'), packed.substr(0, 5)})
    expect_bad_data([&] { decoded(with_data(data)); },
                    "rose/1.jpg: is truncated or corrupt (expected a whole PNG, found ");
  expect_bad_data([&] { decoded(png_header(8, 8) + chunk("IEND", "")); },
                  "is truncated or corrupt (expected a whole PNG, found ");
  auto const without_palette = png_header(8, 8, 8, PNG_COLOR_TYPE_PALETTE);
  expect_bad_data([&] { decoded(without_palette + chunk("IDAT", packed) + chunk("IEND", "")); },
                  "is truncated or corrupt (expected a whole PNG, found ");
}

TEST(EncodedImage, RefusesKindsOfPngByName) {
  auto const end = chunk("IDAT", "") + chunk("IEND", "");
  expect_bad_data([&] { image_of(png_header(8, 8, 16) + end); },
                  "rose/1.jpg: has 16 bits per channel (expected at most 8, found 16); convert it "
                  "to 8 bits");
  expect_bad_data(
      [&] { image_of(png_header(8, 8) + chunk("acTL", std::string(8, '\0')) + end); },
      "rose/1.jpg: is an animated PNG (expected a single image, found an animation (chunk acTL)); "
      "convert it to a PNG of one frame");
}

TEST(EncodedImage, RefusesASizeThatAPngCannotHave) {
  auto const image = [](std::uint32_t width, std::uint32_t height) {
    return image_of(png_header(width, height) + chunk("IDAT", "") + chunk("IEND", ""));
  };
  constexpr char too_large[] = "is too large (expected edges of at most 65500 pixels";
  expect_bad_data([&] { image(65501, 1); }, too_large);
  expect_bad_data([&] { image(1, 0x7fffffff); }, too_large);
  expect_bad_data([&] { image(16385, 16384); }, too_large);
  expect_bad_data([&] { image(16384, 16384); },
                  "is truncated or corrupt (expected 268451840 bytes once unpacked, found 57");
  expect_bad_data([&] { image(0, 1); }, "is truncated or corrupt");
  expect_bad_data([&] { image(1, 0x80000000); }, "is truncated or corrupt");
}

// Both

TEST(EncodedImage, NamesOtherFormats) {
  struct Other {
    std::string_view start;
    char const* message;
  };
  constexpr Other others[]{
      {"GIF89a"sv, "is a GIF image"},
      {"RIFF\x24\x10\0\0WEBPVP8 "sv, "is a WebP image"},
      {"BM\x36\x10"sv, "is a BMP image"},
      {"II*\0\x08"sv, "is a TIFF image"},
      {"MM\0*\0"sv, "is a TIFF image"},
      {"\0\0\0\x18"
       "ftypheic"sv,
       "is a HEIC image"},
      {"\0\0\0\x1c"
       "ftypmif1"sv,
       "is a HEIC image"},
      {"\0\0\0\x1c"
       "ftypavif"sv,
       "is an AVIF image"},
      {"RIFF\x24\x10\0\0WAVEfmt "sv, "is neither JPEG nor PNG"},
      {"<!DOCTYPE html>"sv, "is neither JPEG nor PNG"},
      {"\xff\xd8"sv, "is neither JPEG nor PNG"},
      {"\x89PNG\n\x1a\n"sv, "is neither JPEG nor PNG"},  // line ends were converted
      {"\0"sv, "is neither JPEG nor PNG"},
  };
  for (auto const& other : others)
    expect_bad_data([&] { image_of(std::string(other.start)); },
                    str("rose/1.jpg: ", other.message, " (expected "));
  expect_bad_data([&] { image_of("GIF89a"); }, "found 0x47494638); convert it to JPEG or PNG");
  expect_bad_data([&] { image_of(""); },
                  "rose/1.jpg: is empty (expected a JPEG or PNG image, found 0 bytes)");
}

TEST(EncodedImage, TellsTheFormatByContentNotByName) {
  auto const content = png(samples({5, 5}, png_kinds[8]), png_kinds[8]);
  EXPECT_TRUE(same(decoded(content), samples({5, 5}, png_kinds[8])));  // named rose/1.jpg
}

TEST(EncodedImage, ExpectsARegionInsideTheImage) {
  for (auto const& content : {jpeg(ImageSize{20, 30}, jpeg_kinds[2]),
                              png(samples({20, 30}, png_kinds[8]), png_kinds[8])}) {
    for (Region const& region : {Region{-1, 0, 5, 5},
                                 {0, -1, 5, 5},
                                 {16, 0, 5, 5},
                                 {0, 26, 5, 5},
                                 {0, 0, 0, 5},
                                 {0, 0, 5, 0},
                                 {0, 0, 21, 30},
                                 {0, 0, 20, 31},
                                 {std::int64_t{1} << 62, 0, 5, 5}})
      EXPECT_THROW(decoded(content, region, 3), std::logic_error);
    EXPECT_THROW(decoded(content, 2), std::logic_error);
    EXPECT_THROW(decoded(content, {0, 0, 5, 5}, 3, {0, 1}), std::logic_error);
  }
}

TEST(EncodedImage, KeepsMemoryFromImageToImage) {
  auto const large = jpeg(ImageSize{64, 64}, jpeg_kinds[2]);
  auto const small = png(samples({9, 9}, png_kinds[0]), png_kinds[0]);
  Pixels out;
  image_of(large).decode({0, 0, 64, 64}, unscaled, 3, out);
  auto const* const memory = out.values.data();
  image_of(small).decode({0, 0, 9, 9}, unscaled, 1, out);
  EXPECT_TRUE(same(out, decoded(small, 1)));
  image_of(large).decode({0, 0, 64, 64}, unscaled, 3, out);
  EXPECT_TRUE(same(out, reference(large, 3)));
  EXPECT_EQ(out.values.data(), memory);
}

TEST(EncodedImage, DecodesOnManyThreadsAtOnce) {
  auto const first = jpeg(ImageSize{61, 83}, jpeg_kinds[2]);
  auto const second = png(samples({61, 83}, png_kinds[12]), png_kinds[12]);
  auto const cut = first.substr(0, first.size() / 2);
  auto const first_pixels = decoded(first), second_pixels = decoded(second);
  std::array<int, 4> right{};
  std::vector<std::thread> threads;
  for (auto& count : right)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        bool refused = false;
        try {
          decoded(cut);
        } catch (Error const&) {
          refused = true;
        }
        if (refused && same(decoded(first), first_pixels) && same(decoded(second), second_pixels))
          ++count;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, (std::array{50, 50, 50, 50}));
}

}  // namespace
}  // namespace stratagem
