#include "data/images/png.hpp"

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include <png.h>
#include <zlib.h>

#include "base/deflate.hpp"
#include "base/text.hpp"
#include "data/images/bad_image.hpp"

namespace stratagem {
namespace {

constexpr std::size_t signature_bytes = 8;

std::uint32_t big_endian(std::span<std::byte const, 4> bytes) {
  std::uint32_t value = 0;
  for (auto byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

/// Walks through the chunks to the last one, IEND. What follows it is ignored.
void check_chunks(std::span<std::byte const> bytes, std::string const& name) {
  constexpr std::size_t frame = 12;  // length, type and checksum
  auto rest = bytes.subspan(signature_bytes);
  for (int chunk = 1;; ++chunk) {
    auto const length = rest.size() < frame ? 0 : std::size_t{big_endian(rest.first<4>())};
    if (rest.size() < frame + length)
      throw bad_image(name, "is truncated or corrupt", "a PNG up to its last chunk, IEND",
                      str(bytes.size(), " bytes, which end in chunk ", chunk));
    auto const* content = reinterpret_cast<Bytef const*>(rest.data() + 4);
    auto const stated = big_endian(rest.subspan(8 + length).first<4>());
    auto const checksum = crc32_z(0, content, 4 + length);
    if (checksum != stated)
      throw bad_image(name, "is truncated or corrupt",
                      str("checksum ", stated, " of chunk ", chunk), str(checksum));
    std::string_view const type(reinterpret_cast<char const*>(content), 4);
    if (type == "acTL")
      throw bad_image(name, "is an animated PNG", "a single image", "an animation (chunk acTL)",
                      "convert it to a PNG of one frame");
    if (type == "IEND") return;
    rest = rest.subspan(frame + length);
  }
}

/// What libpng's callbacks use.
struct Source {
  std::span<std::byte const> rest;
  std::jmp_buf escape;
  std::array<char, 128> message;
};

[[noreturn]] void fail(png_structp png, png_const_charp message) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::snprintf(source->message.data(), source->message.size(), "%s", message);
  std::longjmp(source->escape, 1);
}

/// Warnings are about colour profiles, texts and the like.
void ignore(png_structp, png_const_charp) {}

void read(png_structp png, png_bytep to, std::size_t length) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (source->rest.size() < length) png_error(png, "the end of the file");
  std::memcpy(to, source->rest.data(), length);
  source->rest = source->rest.subspan(length);
}

/// Luma of ITU-R 601 with 16 fractional bits, rounded.
std::uint8_t luma(std::uint8_t const* rgb) {
  return static_cast<std::uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >>
                                   16);
}

class PngReader {
 public:
  explicit PngReader(std::string const& name) : name_(name) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(PngReader const&) = delete;
  PngReader& operator=(PngReader const&) = delete;

  void read_header(std::span<std::byte const> bytes);
  void decode(Region const& region, std::int64_t channels, Pixels& out);
  ImageSize size() const {
    return {png_get_image_height(png_, info_), png_get_image_width(png_, info_)};
  }

 private:
  /// Calls `steps`, which must leave nothing to destroy when libpng jumps out of it, and throws if
  /// libpng failed.
  template <class Steps>
  void run(Steps const& steps) {
    if (setjmp(source_.escape) != 0)
      throw bad_image(name_, "is truncated or corrupt", "a whole PNG", source_.message.data());
    steps();
  }
  void create();
  void check_kind(std::size_t bytes) const;
  /// `lines`: room for lines of `line` bytes, as decode() says.
  void read_rows(int passes, Region const& region, std::size_t line, png_bytep lines, Pixels& out);

  std::string const& name_;
  Source source_{};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

void PngReader::create() {
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, fail, ignore);
  if (png_ != nullptr) info_ = png_create_info_struct(png_);
  if (info_ == nullptr) return;
  png_set_read_fn(png_, &source_, read);
  png_set_crc_action(png_, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);  // check_chunks() did
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);     // check_image_size() has others
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // all but the pixels'
}

void PngReader::check_kind(std::size_t bytes) const {
  if (png_get_bit_depth(png_, info_) == 16)
    throw bad_image(name_, "has 16 bits per channel", "at most 8", "16", "convert it to 8 bits");
  check_image_size(size(), name_);
  auto const unpacked = (png_get_rowbytes(png_, info_) + 1) * png_get_image_height(png_, info_);
  if (unpacked / deflate_max_ratio > bytes)
    throw bad_image(name_, "is truncated or corrupt", str(unpacked, " bytes once unpacked"),
                    str(bytes, " packed bytes"));
}

void PngReader::read_header(std::span<std::byte const> bytes) {
  source_.rest = bytes;
  run([&] { create(); });
  if (info_ == nullptr) throw std::bad_alloc();
  run([&] { png_read_info(png_, info_); });
  check_kind(bytes.size());
}

void PngReader::read_rows(int passes, Region const& region, std::size_t line, png_bytep lines,
                          Pixels& out) {
  bool const grey_from_rgb = out.channels == 1 && png_get_channels(png_, info_) == 3;
  auto const bottom = region.top + region.height;
  auto* const unwanted = lines;
  auto* const wanted = lines + line;
  for (int pass = 1; pass <= passes; ++pass) {
    bool const last = pass == passes;
    for (std::int64_t y = 0; y < (last ? bottom : size().height); ++y) {
      bool const inside = y >= region.top && y < bottom;
      auto const kept = passes > 1 ? static_cast<std::size_t>(y - region.top) : 0;
      auto* const row = inside ? wanted + kept * line : unwanted;
      png_read_row(png_, row, nullptr);
      if (!last || !inside) continue;
      auto* const to = out.row(y - region.top);
      if (grey_from_rgb)
        for (std::int64_t x = 0; x < region.width; ++x) to[x] = luma(row + 3 * (region.left + x));
      else
        std::memcpy(to, row + region.left * out.channels,
                    static_cast<std::size_t>(out.row_values()));
    }
  }
}

void PngReader::decode(Region const& region, std::int64_t channels, Pixels& out) {
  int passes = 1;
  run([&] {
    png_set_expand(png_);  // to 8 bits, palettes to RGB, tRNS to alpha
    png_set_strip_alpha(png_);
    if (channels == 3) png_set_gray_to_rgb(png_);
    passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  });
  out.resize(region.height, region.width, channels);
  auto const line = png_get_rowbytes(png_, info_);
  // Interlaced rows are filled pass by pass. One more takes what is outside the region.
  auto const rows = passes > 1 ? static_cast<std::size_t>(region.height) : 1;
  std::vector<png_byte> lines((rows + 1) * line);
  run([&] { read_rows(passes, region, line, lines.data(), out); });
}

}  // namespace

ImageSize png_size(std::span<std::byte const> bytes, std::string const& name) {
  check_chunks(bytes, name);
  PngReader reader(name);
  reader.read_header(bytes);
  return reader.size();
}

void decode_png(std::span<std::byte const> bytes, std::string const& name, Region const& region,
                std::int64_t channels, Pixels& out) {
  PngReader reader(name);
  reader.read_header(bytes);
  reader.decode(region, channels, out);
}

}  // namespace stratagem
