#include "data/images/jpeg.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
#include <cstring>
#include <iterator>
#include <new>

#include <jerror.h>
#include <jpeglib.h>

#include "base/text.hpp"
#include "data/images/bad_image.hpp"

namespace stratagem {
namespace {

/// Where libjpeg reports errors to, and where it continues after one.
struct Failure {
  jpeg_error_mgr manager;  // first: libjpeg passes a pointer to it
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  failure->manager.format_message(info, failure->message);
  std::longjmp(failure->escape, 1);
}

/// A negative level is a warning: damage that libjpeg would paint over. Odd headers do not change
/// the pixels.
void fail_at_damage(j_common_ptr info, int level) {
  auto const code = info->err->msg_code;
  bool const harmless =
      code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM || code == JWRN_NOT_SEQUENTIAL;
  if (level < 0 && !harmless) fail(info);
}

/// The rows or the columns of a region.
struct Range {
  std::int64_t begin, end;

  /// To the nearest pixels of an image that has `size` of them before it is scaled by 1/`factor`.
  Range scaled(std::int64_t factor, std::int64_t size) const {
    auto const nearest = [&](std::int64_t edge) { return (2 * edge + factor) / (2 * factor); };
    return {nearest(begin), std::min(nearest(end), (size + factor - 1) / factor)};
  }
  std::int64_t length() const { return end - begin; }
};

class JpegReader {
 public:
  explicit JpegReader(std::string const& name) : name_(name) {
    info_.err = jpeg_std_error(&failure_.manager);
    failure_.manager.error_exit = fail;
    failure_.manager.emit_message = fail_at_damage;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(JpegReader const&) = delete;
  JpegReader& operator=(JpegReader const&) = delete;

  void read_header(std::span<std::byte const> bytes);
  void decode(Region const& region, ImageSize const& least, std::int64_t channels, Pixels& out);
  ImageSize size() const { return {info_.image_height, info_.image_width}; }

 private:
  /// Calls `steps`, which must leave nothing to destroy when libjpeg jumps out of it, and throws
  /// if libjpeg failed.
  template <class Steps>
  void run(Steps const& steps) {
    if (setjmp(failure_.escape) != 0) throw error();
    steps();
  }
  Error error() const;
  void check_kind(std::size_t bytes) const;
  bool exact_in_part() const;
  void read_rows(Range const& rows, Range const& columns, Pixels& out);

  std::string const& name_;
  Failure failure_{};
  jpeg_decompress_struct info_{};
};

Error JpegReader::error() const {
  if (failure_.manager.msg_code == JERR_IMAGE_TOO_BIG) check_image_size(size(), name_);
  switch (failure_.manager.msg_code) {
    case JERR_BAD_PRECISION:
      return bad_image(name_, str("has ", info_.data_precision, " bits per channel"), "8",
                       str(info_.data_precision), "convert it to 8 bits");
    case JERR_SOF_UNSUPPORTED:
      return bad_image(name_, "is a JPEG of an unusual kind", "baseline or progressive",
                       failure_.message, "convert it to baseline JPEG or to PNG");
    case JERR_OUT_OF_MEMORY:
      throw std::bad_alloc();
    default:
      return bad_image(name_, "is truncated or corrupt", "a whole JPEG", failure_.message);
  }
}

void JpegReader::check_kind(std::size_t bytes) const {
  auto const colours = info_.jpeg_color_space;
  if (colours == JCS_CMYK || colours == JCS_YCCK)
    throw bad_image(name_, "has CMYK colours", "grey, YCbCr or RGB", "CMYK", "convert it to RGB");
  if (colours != JCS_GRAYSCALE && colours != JCS_YCbCr && colours != JCS_RGB)
    throw bad_image(name_, "has unknown colours", "grey, YCbCr or RGB",
                    str(info_.num_components, " channels"), "convert it to RGB");
  check_image_size(size(), name_);
  // Huffman coding spends a bit or more on each block, and these cover at most 1024 pixels per 8.
  auto const pixels = std::size_t{info_.image_width} * info_.image_height;
  if (!info_.arith_code && pixels / 1024 > bytes)
    throw bad_image(name_, "is truncated or corrupt",
                    str("data of ", info_.image_width, "x", info_.image_height, " pixels"),
                    str(bytes, " bytes"));
}

void JpegReader::read_header(std::span<std::byte const> bytes) {
  run([&] {
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, reinterpret_cast<unsigned char const*>(bytes.data()),
                 static_cast<unsigned long>(bytes.size()));
    jpeg_read_header(&info_, TRUE);
  });
  check_kind(bytes.size());
}

/// Whether columns and rows can be left out without changing others.
bool JpegReader::exact_in_part() const {
  // libjpeg-turbo 2.1 upsamples too few columns of a cropped and scaled image with factors of 4.
  bool const scaled = info_.scale_denom > info_.scale_num;
  if (scaled && std::max(info_.max_h_samp_factor, info_.max_v_samp_factor) > 2) return false;
  if (!info_.progressive_mode) return true;
  // Coefficients that the file lacks are estimated from neighbouring blocks.
  for (int component = 0; component < info_.num_components; ++component) {
    auto const& missing_bits = info_.coef_bits[component];
    auto const known = [](int bits) { return bits == 0; };
    if (!std::all_of(std::begin(missing_bits), std::end(missing_bits), known)) return false;
  }
  return true;
}

void JpegReader::read_rows(Range const& rows, Range const& columns, Pixels& out) {
  // Chroma is upsampled from a neighbour on each side, thus up to two pixels away. libjpeg keeps
  // the rows that it needs, but treats the columns that it is asked for as a whole image.
  constexpr std::int64_t margin = 2;
  auto const begin = std::max<std::int64_t>(columns.begin - margin, 0);
  auto const end = std::min<std::int64_t>(columns.end + margin, info_.output_width);
  auto left = JDIMENSION{0};
  auto width = info_.output_width;
  if (exact_in_part()) {
    left = static_cast<JDIMENSION>(begin);
    width = static_cast<JDIMENSION>(end - begin);
    jpeg_crop_scanline(&info_, &left, &width);  // moves `left` to the start of a block
    jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(rows.begin));
  }
  auto* const common = reinterpret_cast<j_common_ptr>(&info_);
  auto const values = width * static_cast<JDIMENSION>(out.channels);
  auto* const row = info_.mem->alloc_sarray(common, JPOOL_IMAGE, values, 1);
  auto const* const wanted = row[0] + (columns.begin - left) * out.channels;
  while (info_.output_scanline < rows.end) {
    auto const y = info_.output_scanline - rows.begin;
    jpeg_read_scanlines(&info_, row, 1);
    if (y >= 0) std::memcpy(out.row(y), wanted, static_cast<std::size_t>(out.row_values()));
  }
}

void JpegReader::decode(Region const& region, ImageSize const& least, std::int64_t channels,
                        Pixels& out) {
  auto const whole = size();
  Range const rows{region.top, region.top + region.height};
  Range const columns{region.left, region.left + region.width};
  unsigned factor = 8;
  while (factor > 1 && (rows.scaled(factor, whole.height).length() < least.height ||
                        columns.scaled(factor, whole.width).length() < least.width))
    factor /= 2;
  info_.scale_num = 1;
  info_.scale_denom = factor;
  info_.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  run([&] { jpeg_start_decompress(&info_); });
  auto const scaled_rows = rows.scaled(factor, whole.height);
  auto const scaled_columns = columns.scaled(factor, whole.width);
  out.resize(scaled_rows.length(), scaled_columns.length(), channels);
  run([&] { read_rows(scaled_rows, scaled_columns, out); });
}

}  // namespace

ImageSize jpeg_size(std::span<std::byte const> bytes, std::string const& name) {
  JpegReader reader(name);
  reader.read_header(bytes);
  return reader.size();
}

void decode_jpeg(std::span<std::byte const> bytes, std::string const& name, Region const& region,
                 ImageSize const& least, std::int64_t channels, Pixels& out) {
  JpegReader reader(name);
  reader.read_header(bytes);
  reader.decode(region, least, channels, out);
}

}  // namespace stratagem
