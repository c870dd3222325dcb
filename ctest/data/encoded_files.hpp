#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
#include <string>
#include <vector>

#include <jpeglib.h>
#include <png.h>

#include "data/images/pixels.hpp"

namespace stratagem::test {

/// The same numbers in each run.
class Noise {
 public:
  unsigned below(unsigned limit) {
    state_ = state_ * 1664525 + 1013904223;
    return (state_ >> 8) % limit;
  }

 private:
  std::uint32_t state_ = 1;
};

/// Slopes, edges and noise.
inline Pixels picture(ImageSize const& size, std::int64_t channels) {
  Pixels image;
  image.resize(size.height, size.width, channels);
  Noise noise;
  for (std::int64_t y = 0; y < size.height; ++y)
    for (std::int64_t x = 0; x < size.width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        image.row(y)[x * channels + c] = static_cast<std::uint8_t>(
            (3 * x + (5 - 4 * c) * y + 90 * ((x / 7 + y / 5 + c) % 2) + noise.below(40)) & 255);
  return image;
}

enum class Scans { one, of_each_channel, progressive, progressive_start };

struct JpegKind {
  char const* name;
  std::int64_t channels;
  std::array<int, 2> luma;  ///< horizontal and vertical sampling factor; those of chroma are 1
  Scans scans = Scans::one;
  J_COLOR_SPACE colours = JCS_YCbCr;
  bool arithmetic = false;
  unsigned restart_rows = 0;
};

inline void choose_scans(jpeg_compress_struct& info, Scans scans,
                         std::vector<jpeg_scan_info>& script) {
  if (scans == Scans::progressive) jpeg_simple_progression(&info);
  if (scans == Scans::progressive_start)
    script.push_back({info.num_components, {0, 1, 2, 3}, 0, 0, 0, 1});
  if (scans == Scans::of_each_channel)
    for (int channel = 0; channel < info.num_components; ++channel)
      script.push_back({1, {channel}, 0, 63, 0, 0});
  if (script.empty()) return;
  info.scan_info = script.data();
  info.num_scans = static_cast<int>(script.size());
}

inline std::string jpeg(Pixels const& image, JpegKind const& kind) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long length = 0;
  jpeg_mem_dest(&info, &bytes, &length);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = static_cast<int>(image.channels);
  constexpr std::array given{JCS_UNKNOWN, JCS_GRAYSCALE, JCS_UNKNOWN, JCS_RGB, JCS_CMYK};
  info.in_color_space = given[static_cast<std::size_t>(image.channels)];
  jpeg_set_defaults(&info);
  if (image.channels >= 3) jpeg_set_colorspace(&info, kind.colours);
  jpeg_set_quality(&info, 85, TRUE);
  info.comp_info[0].h_samp_factor = kind.luma[0];
  info.comp_info[0].v_samp_factor = kind.luma[1];
  info.arith_code = kind.arithmetic ? TRUE : FALSE;
  info.restart_in_rows = static_cast<int>(kind.restart_rows);
  std::vector<jpeg_scan_info> script;
  choose_scans(info, kind.scans, script);
  jpeg_start_compress(&info, TRUE);
  for (std::int64_t y = 0; y < image.height; ++y) {
    auto* row = const_cast<JSAMPROW>(image.row(y));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string content(reinterpret_cast<char const*>(bytes), length);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return content;
}

inline std::string jpeg(ImageSize const& size, JpegKind const& kind) {
  return jpeg(picture(size, kind.channels), kind);
}

struct PngKind {
  char const* name;
  int colour_type;
  int bits;
  bool interlaced = false;
  bool transparent = false;  ///< with chunk tRNS
};

inline std::int64_t samples_of(PngKind const& kind) {
  auto const colour =
      kind.colour_type == PNG_COLOR_TYPE_RGB || kind.colour_type == PNG_COLOR_TYPE_RGB_ALPHA;
  return (colour ? 3 : 1) + ((kind.colour_type & PNG_COLOR_MASK_ALPHA) != 0 ? 1 : 0);
}

inline png_color palette_entry(unsigned index) {
  auto const byte = [](unsigned value) { return static_cast<png_byte>(value & 255); };
  return {byte(7 * index + 3), byte(255 - 5 * index), byte(91 * index + 40)};
}

inline void write_header(png_structp png, png_infop info, ImageSize const& size,
                         PngKind const& kind) {
  png_set_IHDR(png, info, static_cast<png_uint_32>(size.width),
               static_cast<png_uint_32>(size.height), kind.bits, kind.colour_type,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_gAMA(png, info, 1.0);  // to be ignored
  auto const count = 1u << std::min(kind.bits, 8);
  std::vector<png_color> palette;
  for (unsigned index = 0; index < count; ++index) palette.push_back(palette_entry(index));
  bool const has_palette = kind.colour_type == PNG_COLOR_TYPE_PALETTE;
  if (has_palette) png_set_PLTE(png, info, palette.data(), static_cast<int>(count));
  std::array<png_byte, 2> const alpha{0, 100};
  png_color_16 const colour{0, 1, 2, 3, 1};
  if (kind.transparent) {
    if (has_palette)
      png_set_tRNS(png, info, alpha.data(), 2, nullptr);
    else
      png_set_tRNS(png, info, nullptr, 0, &colour);
  }
  png_write_info(png, info);
  png_set_packing(png);
}

/// `samples`: one byte per sample, of the kind's number of channels.
inline std::string png(Pixels const& samples, PngKind const& kind) {
  auto* writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  auto* info = png_create_info_struct(writer);
  std::string content;
  auto const append = [](png_structp to, png_bytep bytes, std::size_t length) {
    static_cast<std::string*>(png_get_io_ptr(to))
        ->append(reinterpret_cast<char const*>(bytes), length);
  };
  png_set_write_fn(writer, &content, append, nullptr);
  write_header(writer, info, {samples.height, samples.width}, kind);
  int const passes = png_set_interlace_handling(writer);
  for (int pass = 0; pass < passes; ++pass)
    for (std::int64_t y = 0; y < samples.height; ++y) png_write_row(writer, samples.row(y));
  png_write_end(writer, info);
  png_destroy_write_struct(&writer, &info);
  return content;
}

}  // namespace stratagem::test
