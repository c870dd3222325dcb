#include "h5/stored_array.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <hdf5.h>

#include "base/bad_data.hpp"
#include "base/deflate.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "h5/error.hpp"

namespace stratagem::h5 {
namespace {

/// Rows of one block that count as a piece.
constexpr std::int64_t rows_of_block = 64;
constexpr auto best_ratio = static_cast<std::int64_t>(deflate_max_ratio);
constexpr std::int64_t most_packed_text = 4096;  // [B]

/// What a file is asked about, for messages.
struct Place {
  std::filesystem::path const& path;
  std::string const& dataset;

  [[noreturn]] void refuse(std::string const& problem, std::string const& expected,
                           std::string const& found) const {
    throw bad_data(str(path.string(), ": dataset ", dataset), problem, expected, found,
                   "analysis/pack_images.py writes such files");
  }
};

std::vector<std::int64_t> shape_of(hid_t space) {
  auto const dimensions = H5Sget_simple_extent_ndims(space);
  check(dimensions, "reading a shape");
  std::vector<hsize_t> sizes(static_cast<std::size_t>(dimensions));
  check(H5Sget_simple_extent_dims(space, sizes.data(), nullptr), "reading a shape");
  return {sizes.begin(), sizes.end()};
}

std::string text_of(std::vector<std::int64_t> const& shape) {
  std::vector<std::string> sizes;
  for (auto const size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

std::string name_of(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return str(8 * H5Tget_size(type), "-bit ",
                 H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned " : "", "integers");
    case H5T_FLOAT:
      return str(8 * H5Tget_size(type), "-bit floating point");
    case H5T_STRING:
      return "text";
    default:
      return "elements of another kind";
  }
}

/// Of a dataset, which must be of bytes, and not empty.
std::vector<std::int64_t> shape_of_bytes(Place const& place, hid_t dataset,
                                         std::size_t dimensions) {
  auto const type = owned(H5Dget_type(dataset), "reading a type");
  if (H5Tequal(type.get(), H5T_NATIVE_UINT8) <= 0)
    place.refuse("its elements are not bytes", "8-bit unsigned integers", name_of(type.get()));
  auto const space = owned(H5Dget_space(dataset), "reading a shape");
  auto const shape = shape_of(space.get());
  if (shape.size() != dimensions)
    place.refuse("its shape", str(dimensions, " dimensions"), text_of(shape));
  if (shape.front() < 1) place.refuse("it is empty", "images", text_of(shape));
  return shape;
}

/// Bytes of a row; empty if the array could not be in memory.
std::optional<std::int64_t> row_bytes(std::vector<std::int64_t> const& shape) {
  constexpr std::int64_t most = 1 << 30;
  std::int64_t bytes = 1;
  for (auto const size : std::span(shape).subspan(1)) {
    if (size < 1 || size > most / bytes) return std::nullopt;
    bytes *= size;
  }
  return bytes;
}

/// Whether the chunks are packed by gzip. Shuffling changes nothing in bytes.
bool is_packed(hid_t creation, Place const& place) {
  auto const filters = H5Pget_nfilters(creation);
  check(filters, "reading filters");
  bool packed = false;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    std::array<char, 64> name{};
    auto const filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr,
                                       name.size(), name.data(), nullptr);
    check(filter, "reading a filter");
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE)
      place.refuse("the compression is not one that can be read", "gzip or none",
                   str("filter ", filter));
    packed = packed || filter == H5Z_FILTER_DEFLATE;
  }
  return packed;
}

class PieceFinder {
 public:
  PieceFinder(Place const& place, std::int64_t file_bytes, hid_t dataset, StoredArray& array,
              std::int64_t bytes_of_row)
      : place_(place),
        file_bytes_(file_bytes),
        dataset_(dataset),
        array_(array),
        row_(bytes_of_row) {}

  void find(hid_t creation) {
    switch (H5Pget_layout(creation)) {
      case H5D_CONTIGUOUS:
        if (H5Pget_external_count(creation) > 0)
          place_.refuse("its bytes are in another file", "bytes in this file", "external storage");
        return find_in_block();
      case H5D_CHUNKED:
        return find_chunks(creation);
      default:
        place_.refuse("it is stored in a way that cannot be read", "one block, or chunks",
                      "another layout");
    }
  }

 private:
  void find_in_block() {
    auto const offset = H5Dget_offset(dataset_);
    if (offset == HADDR_UNDEF) place_.refuse("it was never written", "bytes", "none");
    auto const rows = array_.shape.front();
    array_.rows_per_piece = rows_of_block;
    auto const begin = static_cast<std::int64_t>(offset);
    if (begin < 0 || begin > file_bytes_ || rows > (file_bytes_ - begin) / row_)
      place_.refuse("it is cut", str(rows, " rows of ", row_, " bytes from byte ", begin, " on"),
                    str("a file of ", file_bytes_, " bytes"));
    for (std::int64_t row = 0; row < rows; row += rows_of_block)
      array_.pieces.push_back(
          {.offset = begin + row * row_, .size = std::min(rows_of_block, rows - row) * row_});
  }

  void find_chunks(hid_t creation) {
    std::vector<hsize_t> chunk(array_.shape.size());
    check(H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data()),
          "reading the size of chunks");
    std::vector<std::int64_t> const sizes(chunk.begin(), chunk.end());
    if (!std::equal(sizes.begin() + 1, sizes.end(), array_.shape.begin() + 1))
      place_.refuse("a chunk holds parts of images", "chunks of whole images",
                    "chunks of " + text_of(sizes));
    array_.rows_per_piece = sizes.front();
    bool const packed = is_packed(creation, place_);
    for (std::int64_t row = 0; row < array_.shape.front(); row += sizes.front())
      add_chunk(row, packed);
  }

  void add_chunk(std::int64_t row, bool packed) {
    std::vector<hsize_t> at(array_.shape.size(), 0);
    at.front() = static_cast<hsize_t>(row);
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    check(H5Dget_chunk_info_by_coord(dataset_, at.data(), &mask, &address, &size),
          "looking for a chunk");
    if (address == HADDR_UNDEF || size == 0)
      place_.refuse(str("the chunk of row ", row, " was never written"), "bytes", "none");
    // Its filters may have been left out for one chunk.
    StoredPiece const piece{.offset = static_cast<std::int64_t>(address),
                            .size = static_cast<std::int64_t>(size),
                            .packed = packed && mask == 0};
    if (piece.offset < 0 || piece.size < 0 || piece.offset > file_bytes_ ||
        piece.size > file_bytes_ - piece.offset)
      place_.refuse(str("the chunk of row ", row, " is cut"),
                    str(piece.size, " bytes from byte ", piece.offset, " on"),
                    str("a file of ", file_bytes_, " bytes"));
    auto const rows = piece.packed ? piece.size * best_ratio / row_ : piece.size / row_;
    if (array_.rows_per_piece > rows + 1 || (!piece.packed && array_.rows_per_piece > rows))
      place_.refuse(str("the chunk of row ", row, " is too short"),
                    str(array_.rows_per_piece, " rows of ", row_, " bytes"),
                    str(piece.size, " bytes"));
    array_.pieces.push_back(piece);
  }

  Place const& place_;
  std::int64_t file_bytes_;
  hid_t dataset_;
  StoredArray& array_;
  std::int64_t row_;
};

/// What the library refuses is the fault of the file.
template <class Read>
auto reading(std::filesystem::path const& path, Read const& read) {
  try {
    return read();
  } catch (Hdf5Error const& failure) {
    throw Error(ExitCode::bad_data, str(path.string(), ": ", failure.what()), {},
                "analysis/pack_images.py writes such files");
  }
}

std::int64_t bytes_of(std::filesystem::path const& path) {
  std::error_code unknown;
  auto const bytes = std::filesystem::file_size(path, unknown);
  return unknown ? 0 : static_cast<std::int64_t>(bytes);
}

}  // namespace

ArrayFile::ArrayFile(std::filesystem::path const& path)
    : path_(path), file_bytes_(bytes_of(path)), file_(reading(path, [&] {
        return owned(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "opening it");
      })) {}

Handle ArrayFile::open(std::string const& dataset) const {
  if (!has(dataset))
    throw Error(ExitCode::bad_data, str(path_.string(), ": there is no dataset ", dataset), {},
                "analysis/pack_images.py writes such files");
  auto const action = str("opening dataset ", dataset);
  return owned(H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT), action);
}

bool ArrayFile::has(std::string const& dataset) const {
  return H5Lexists(file_.get(), dataset.c_str(), H5P_DEFAULT) > 0 &&
         H5Oexists_by_name(file_.get(), dataset.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::int64_t> ArrayFile::shape(std::string const& dataset,
                                           std::size_t dimensions) const {
  return reading(path_, [&] {
    return shape_of_bytes({path_, dataset}, open(dataset).get(), dimensions);
  });
}

StoredArray ArrayFile::bytes(std::string const& dataset, std::size_t dimensions) const {
  return reading(path_, [&] {
    Place const place{path_, dataset};
    auto const opened = open(dataset);
    StoredArray array{.shape = shape_of_bytes(place, opened.get(), dimensions)};
    auto const row = row_bytes(array.shape);
    if (!row) place.refuse("its shape", "images of at most 1 GiB", text_of(array.shape));
    auto const creation = owned(H5Dget_create_plist(opened.get()), "reading a layout");
    PieceFinder(place, file_bytes_, opened.get(), array, *row).find(creation.get());
    return array;
  });
}

std::vector<std::int64_t> ArrayFile::integers(std::string const& dataset,
                                              std::int64_t count) const {
  return reading(path_, [&] {
    Place const place{path_, dataset};
    auto const opened = open(dataset);
    auto const type = owned(H5Dget_type(opened.get()), "reading a type");
    if (H5Tget_class(type.get()) != H5T_INTEGER)
      place.refuse("its elements", "integers", name_of(type.get()));
    auto const space = owned(H5Dget_space(opened.get()), "reading a shape");
    auto const shape = shape_of(space.get());
    if (shape != std::vector{count})
      place.refuse("its shape", str("[", count, "]"), text_of(shape));
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    check(H5Dread(opened.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
          str("reading dataset ", dataset));
    return values;
  });
}

std::optional<std::string> ArrayFile::text(std::string const& dataset,
                                           std::string const& attribute) const {
  return reading(path_, [&]() -> std::optional<std::string> {
    auto const opened = open(dataset);
    if (H5Aexists(opened.get(), attribute.c_str()) <= 0) return std::nullopt;
    auto const action = str("reading attribute ", attribute);
    auto const found = owned(H5Aopen(opened.get(), attribute.c_str(), H5P_DEFAULT), action);
    auto const type = owned(H5Aget_type(found.get()), action);
    auto const space = owned(H5Aget_space(found.get()), action);
    bool const of_any_length = H5Tis_variable_str(type.get()) > 0;
    auto const bytes = static_cast<std::int64_t>(H5Tget_size(type.get()));
    if (H5Tget_class(type.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1 ||
        (!of_any_length && bytes > most_packed_text))
      Place{path_, dataset}.refuse("attribute " + attribute, "one short text", name_of(type.get()));
    if (!of_any_length) {
      std::string value(static_cast<std::size_t>(bytes), '\0');
      check(H5Aread(found.get(), type.get(), value.data()), action);
      value.resize(::strnlen(value.data(), value.size()));
      return value;
    }
    char* read = nullptr;
    check(H5Aread(found.get(), type.get(), &read), action);
    std::string const value = read != nullptr ? read : "";
    H5free_memory(read);
    return value;
  });
}

std::optional<std::int64_t> ArrayFile::count(std::string const& attribute) const {
  return reading(path_, [&]() -> std::optional<std::int64_t> {
    if (H5Aexists(file_.get(), attribute.c_str()) <= 0) return std::nullopt;
    auto const action = str("reading attribute ", attribute);
    auto const found = owned(H5Aopen(file_.get(), attribute.c_str(), H5P_DEFAULT), action);
    auto const space = owned(H5Aget_space(found.get()), action);
    auto const elements = H5Sget_simple_extent_npoints(space.get());
    check(elements, action);
    return static_cast<std::int64_t>(elements);
  });
}

}  // namespace stratagem::h5
