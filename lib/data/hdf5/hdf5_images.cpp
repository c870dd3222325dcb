#include "data/hdf5/hdf5_images.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr char images_name[] = "images";
constexpr char labels_name[] = "labels";
constexpr std::size_t kept_pieces = 32;
/// Images of so many packed pieces are mixed: not more than are kept, or a piece would be unpacked
/// for every image.
constexpr std::int64_t mixed_pieces = 16;

constexpr char say_layout[] = "images.attrs[\"layout\"] = \"NHWC\" in h5py says it";
constexpr char name_classes[] =
    "make it an array of their names, a JSON list of them, or their number";

bool may_be_channels(std::int64_t size) {
  return size == 1 || size == 3;
}

PixelOrder order_of(fs::path const& path, h5::ArrayFile const& file,
                    std::vector<std::int64_t> const& shape) {
  auto const layout = file.text(images_name, "layout");
  if (layout == "NHWC") return PixelOrder::channels_last;
  if (layout == "NCHW") return PixelOrder::channels_first;
  if (layout)
    throw bad_data(path.string(), "attribute layout of images", "\"NHWC\" or \"NCHW\"",
                   str('"', printable(*layout), '"'), say_layout);
  bool const last = may_be_channels(shape[3]), first = may_be_channels(shape[1]);
  if (last == first)
    throw bad_data(path.string(), "the shape of images does not tell the order of its dimensions",
                   "1 or 3 channels in dimension 1 or 3, or attribute layout: NHWC or NCHW",
                   str(shape[1], " and ", shape[3]), say_layout);
  return last ? PixelOrder::channels_last : PixelOrder::channels_first;
}

void check_labels(fs::path const& path, Hdf5File const& file) {
  auto const most = file.classes ? *file.classes - 1 : most_label;
  auto const wrong = std::ranges::find_if(
      file.labels, [most](std::int64_t label) { return label < 0 || label > most; });
  if (wrong != file.labels.end())
    throw bad_data(path.string(), str("labels[", wrong - file.labels.begin(), "] is out of range"),
                   str("0 to ", most), str(*wrong),
                   file.classes ? "mend the labels, or attribute classes of the file"
                                : "number the classes from 0 on");
}

/// How many classes the file says that there are, if it does.
std::optional<std::int64_t> classes_of(fs::path const& path, h5::ArrayFile const& file) {
  auto const classes = file.attribute("classes");
  if (!classes) return std::nullopt;
  auto count = classes->number.value_or(classes->elements);
  if (classes->text) {
    auto const list = nlohmann::json::parse(*classes->text, nullptr, /*allow_exceptions=*/false);
    count = list.is_array() ? std::ssize(list) : 0;
  }
  if (count < 1 || count > most_label + 1)
    throw bad_data(
        path.string(), "attribute classes does not say how many there are",
        str("1 to ", most_label + 1),
        classes->text ? str('"', printable(classes->text->substr(0, 40)), '"') : str(count),
        name_classes);
  return count;
}

/// The pixels of one image as its file orders them; Region as in Pixels.
void cut(Hdf5File const& file, std::uint8_t const* image, Region const& region,
         std::int64_t channels, Pixels& out) {
  out.resize(region.height, region.width, channels);
  bool const last = file.order == PixelOrder::channels_last;
  auto const step = last ? file.channels : 1;
  auto const plane = last ? 1 : file.height * file.width;
  auto* to = out.values.data();
  for (std::int64_t y = 0; y < region.height; ++y) {
    auto const* from = image + ((region.top + y) * file.width + region.left) * step;
    if (last && channels == file.channels) {
      to = std::copy_n(from, region.width * channels, to);
      continue;
    }
    for (std::int64_t x = 0; x < region.width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        *to++ = from[x * step + std::min(c, file.channels - 1) * plane];
  }
}

std::vector<std::byte> unpacked(RandomAccessFile const& file, h5::StoredPiece const& piece,
                                std::int64_t bytes) {
  std::vector<std::byte> packed(static_cast<std::size_t>(piece.size));
  file.read(piece.offset, packed);
  std::vector<std::byte> content(static_cast<std::size_t>(bytes));
  auto size = static_cast<uLongf>(bytes);
  auto const code = ::uncompress(reinterpret_cast<Bytef*>(content.data()), &size,
                                 reinterpret_cast<Bytef const*>(packed.data()),
                                 static_cast<uLong>(packed.size()));
  if (code != Z_OK || static_cast<std::int64_t>(size) != bytes)
    throw bad_data(file.path().string(), str("the packed images from byte ", piece.offset, " on"),
                   str(bytes, " bytes of pixels"), "a corrupt stream", "copy the file again");
  return content;
}

}  // namespace

Hdf5File::Hdf5File(fs::path const& path) {
  h5::ArrayFile const file(path);
  images = file.bytes(images_name, 4);
  auto const& shape = images.shape;
  order = order_of(path, file, shape);
  bool const last = order == PixelOrder::channels_last;
  height = last ? shape[1] : shape[2];
  width = last ? shape[2] : shape[3];
  channels = last ? shape[3] : shape[1];
  labels = file.integers(labels_name, size());
  classes = classes_of(path, file);
  check_labels(path, *this);
}

std::int64_t hdf5_channels(fs::path const& path) {
  h5::ArrayFile const file(path);
  auto const shape = file.shape(images_name, 4);
  return order_of(path, file, shape) == PixelOrder::channels_last ? shape[3] : shape[1];
}

Hdf5Images::Hdf5Images(std::vector<fs::path> const& paths) : unpacked_(kept_pieces) {
  std::int64_t begin = 0;
  for (auto const& path : paths) {
    Hdf5File content(path);
    auto const& first = files_.empty() ? content : files_.front().content;
    if (content.channels != first.channels || content.classes != first.classes)
      throw bad_data(path.string(), str("it differs from ", paths.front().string()),
                     str(first.channels, " channels, ", first.classes.value_or(0), " classes"),
                     str(content.channels, " channels, ", content.classes.value_or(0), " classes"),
                     "write all files alike");
    auto const count = content.size();
    RandomAccessFile bytes(content.images.file);
    files_.push_back({path, std::move(content), std::move(bytes), begin});
    compare_with_library(files_.back());
    begin += count;
  }
}

std::vector<std::int64_t> Hdf5Images::labels() const {
  std::vector<std::int64_t> all;
  for (auto const& [path, content, bytes, begin] : files_)
    all.insert(all.end(), content.labels.begin(), content.labels.end());
  return all;
}

std::int64_t Hdf5Images::classes() const {
  if (auto const named = files_.front().content.classes) return *named;
  return std::ranges::max(labels()) + 1;
}

Runs Hdf5Images::runs() const {
  Runs runs;
  for (auto const& [path, content, bytes, begin] : files_) {
    auto const rows = content.images.rows_per_piece;
    for (std::int64_t row = 0; row < content.size(); row += rows)
      runs.parts.push_back({begin + row, begin + std::min(row + rows, content.size())});
    bool const packed = std::ranges::any_of(content.images.pieces, &h5::StoredPiece::packed);
    if (packed) runs.window = std::min(runs.window, mixed_pieces * rows);
  }
  return runs;
}

Hdf5Images::File const& Hdf5Images::file_of(std::int64_t image) const {
  auto const after = std::ranges::upper_bound(files_, image, {}, &File::begin);
  return *std::prev(after);
}

std::string Hdf5Images::name(std::int64_t image) const {
  auto const& file = file_of(image);
  return str(file.path.string(), ": images[", image - file.begin, "]");
}

std::string Hdf5Images::identity(std::int64_t image) const {
  auto const& content = file_of(image).content;
  return str(content.height, " ", content.width, " ", content.channels);
}

void Hdf5Images::fetch(File const& file, std::int64_t row, std::span<std::byte> into) const {
  auto const& images = file.content.images;
  auto const rows = images.rows_per_piece;
  auto const& piece = images.pieces[static_cast<std::size_t>(row / rows)];
  auto const at = row % rows * file.content.image_bytes();
  if (!piece.packed) return file.bytes.read(piece.offset + at, into);
  // Pieces are numbered by the first image of each.
  auto const content = unpacked_.get(file.begin + row / rows * rows, [&] {
    return unpacked(file.bytes, piece, rows * file.content.image_bytes());
  });
  std::copy_n(content->begin() + at, into.size(), into.begin());
}

void Hdf5Images::compare_with_library(File const& file) const {
  h5::ArrayFile const library(file.path);
  auto const last = file.content.size() - 1;
  std::vector<std::byte> ours(static_cast<std::size_t>(file.content.image_bytes()));
  for (auto const row : {std::int64_t{0}, last / 2, last}) {
    fetch(file, row, ours);
    auto const theirs = library.row(images_name, row);
    auto const [wrong, right] = std::ranges::mismatch(ours, theirs);
    if (wrong != ours.end())
      throw bad_data(str(file.path.string(), ": images[", row, "]"),
                     str("its byte ", wrong - ours.begin(), " is not the one that HDF5 reads"),
                     str(std::to_integer<int>(*right)), str(std::to_integer<int>(*wrong)),
                     "write the file again, without options for how HDF5 stores it");
  }
}

std::int64_t Hdf5Images::stored_bytes(std::int64_t image) const {
  return file_of(image).content.image_bytes();
}

void Hdf5Images::load(std::int64_t image, std::vector<std::byte>& bytes) const {
  auto const& file = file_of(image);
  bytes.resize(static_cast<std::size_t>(file.content.image_bytes()));
  fetch(file, image - file.begin, bytes);
}

void Hdf5Images::read(std::int64_t image, ChooseRegion const& choose, ImageSize const& /*least*/,
                      std::int64_t channels, ReadBuffer& buffer) const {
  auto const& content = file_of(image).content;
  load(image, buffer.encoded);
  cut(content, reinterpret_cast<std::uint8_t const*>(buffer.encoded.data()),
      choose({content.height, content.width}), channels, buffer.pixels);
}

}  // namespace stratagem
