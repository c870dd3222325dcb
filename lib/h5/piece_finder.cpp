#include "h5/piece_finder.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <hdf5.h>

#include "base/deflate.hpp"
#include "h5/error.hpp"

namespace stratagem::h5 {
namespace {

/// Rows of one block that count as a piece.
constexpr std::int64_t rows_of_block = 64;
constexpr auto best_ratio = static_cast<std::int64_t>(deflate_max_ratio);
constexpr char copy_again[] = "copy the file again";
constexpr char write_all[] = "write all images before the file is closed";

std::string create(ArrayPlace const& place, std::string const& how = {}) {
  return str("write it with h5py's create_dataset(\"", place.dataset, "\", data=...", how, ")");
}

/// Where a file in memory, with a user block of so many bytes, keeps the only chunk of a dataset,
/// as the library tells it.
haddr_t told_address(hsize_t user_block) {
  auto const creation = owned(H5Pcreate(H5P_FILE_CREATE), "creating a file");
  check(H5Pset_userblock(creation.get(), user_block), "creating a file");
  auto const access = owned(H5Pcreate(H5P_FILE_ACCESS), "creating a file");
  check(H5Pset_fapl_core(access.get(), 1 << 16, /*backing_store=*/false), "creating a file");
  auto const file =
      owned(H5Fcreate("probe", H5F_ACC_TRUNC, creation.get(), access.get()), "creating a file");
  hsize_t const one = 1, first = 0;
  auto const chunks = owned(H5Pcreate(H5P_DATASET_CREATE), "creating a dataset");
  check(H5Pset_chunk(chunks.get(), 1, &one), "creating a dataset");
  check(H5Pset_alloc_time(chunks.get(), H5D_ALLOC_TIME_EARLY), "creating a dataset");
  auto const space = owned(H5Screate_simple(1, &one, nullptr), "creating a dataset");
  auto const dataset = owned(H5Dcreate2(file.get(), "d", H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT,
                                        chunks.get(), H5P_DEFAULT),
                             "creating a dataset");
  haddr_t address = HADDR_UNDEF;
  check(H5Dget_chunk_info_by_coord(dataset.get(), &first, nullptr, &address, nullptr),
        "looking for a chunk");
  return address;
}

/// Whether the library leaves out the user block where it tells the places of chunks: a fault of
/// its older versions (HDFGroup/hdf5#3003), which distributions may have mended.
bool leaves_out_user_block() {
  constexpr hsize_t block = 512;
  static bool const left_out = told_address(block) == told_address(0);
  return left_out;
}

/// What becomes of a chunk on its way into the file. Shuffling changes nothing in bytes.
struct Filters {
  std::optional<unsigned> gzip;    ///< its bit in a chunk's mask of filters that were left out
  bool whole_chunks_only = false;  ///< the last chunk is not packed if it has rows to spare

  bool pack(unsigned left_out, bool is_whole) const {
    return gzip && (left_out & *gzip) == 0 && (is_whole || !whole_chunks_only);
  }
};

Filters filters_of(hid_t creation, ArrayPlace const& place) {
  auto const count = H5Pget_nfilters(creation);
  check(count, "reading filters");
  Filters found;
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    std::array<char, 64> name{};
    auto const filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr,
                                       name.size(), name.data(), nullptr);
    check(filter, "reading a filter");
    if (filter == H5Z_FILTER_SHUFFLE) continue;
    if (filter != H5Z_FILTER_DEFLATE || found.gzip)
      place.refuse("the compression is not one that can be read", "gzip or none",
                   found.gzip ? "gzip twice" : str("filter ", filter, " ", name.data()),
                   create(place, ", compression=\"gzip\"") + ", or without compression");
    found.gzip = 1U << static_cast<unsigned>(i);
  }
  unsigned options = 0;
  check(H5Pget_chunk_opts(creation, &options), "reading the options of chunks");
  found.whole_chunks_only = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
  return found;
}

class PieceFinder {
 public:
  PieceFinder(ArrayPlace const& place, hid_t dataset, StoredArray& array, std::int64_t bytes_of_row)
      : place_(place), dataset_(dataset), array_(array), row_(bytes_of_row) {
    auto const file = owned(H5Iget_file_id(dataset), "asking for a dataset's file");
    std::string name(static_cast<std::size_t>(H5Fget_name(file.get(), nullptr, 0)), '\0');
    check(H5Fget_name(file.get(), name.data(), name.size() + 1), "asking for a dataset's file");
    array_.file = name;
    std::error_code unknown;
    auto const bytes = std::filesystem::file_size(array_.file, unknown);
    if (!unknown) file_bytes_ = static_cast<std::int64_t>(bytes);
    auto const creation = owned(H5Fget_create_plist(file.get()), "asking for a user block");
    check(H5Pget_userblock(creation.get(), &user_block_), "asking for a user block");
  }

  void find() {
    auto const creation = owned(H5Dget_create_plist(dataset_), "reading a layout");
    switch (H5Pget_layout(creation.get())) {
      case H5D_CONTIGUOUS:
        if (H5Pget_external_count(creation.get()) > 0) refuse_layout("in files beside it");
        return find_in_block();
      case H5D_CHUNKED:
        return find_chunks(creation.get());
      case H5D_VIRTUAL:
        refuse_layout("of other datasets, which it shows as one");
      case H5D_COMPACT:
        refuse_layout("in its header");
      default:
        refuse_layout("in another layout");
    }
  }

 private:
  [[noreturn]] void refuse_layout(std::string const& found) const {
    place_.refuse("its bytes stand in a way that cannot be read", "one block, or chunks", found,
                  create(place_) + " in a file of its own");
  }

  void find_in_block() {
    auto const offset = H5Dget_offset(dataset_);
    if (offset == HADDR_UNDEF) place_.refuse("it was never written", "bytes", "none", write_all);
    auto const rows = array_.shape.front();
    array_.rows_per_piece = rows_of_block;
    auto const begin = static_cast<std::int64_t>(offset);
    if (begin < 0 || begin > file_bytes_ || rows > (file_bytes_ - begin) / row_)
      place_.refuse("it is cut", str(rows, " rows of ", row_, " bytes from byte ", begin, " on"),
                    str("a file of ", file_bytes_, " bytes"), copy_again);
    for (std::int64_t row = 0; row < rows; row += rows_of_block)
      array_.pieces.push_back(
          {.offset = begin + row * row_, .size = std::min(rows_of_block, rows - row) * row_});
  }

  void find_chunks(hid_t creation) {
    std::vector<hsize_t> chunk(array_.shape.size());
    check(H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data()),
          "reading the size of chunks");
    std::vector<std::int64_t> const sizes(chunk.begin(), chunk.end());
    if (!std::equal(sizes.begin() + 1, sizes.end(), array_.shape.begin() + 1)) refuse_parts(sizes);
    array_.rows_per_piece = sizes.front();
    auto const filters = filters_of(creation, place_);
    for (std::int64_t row = 0; row < array_.shape.front(); row += sizes.front())
      add_chunk(row, filters);
  }

  [[noreturn]] void refuse_parts(std::vector<std::int64_t> const& chunk) const {
    auto image = array_.shape;
    image.front() = 1;
    auto whole = shape_text(image);
    whole.front() = '(';
    whole.back() = ')';
    auto repacked = shape_text(image, "x");
    repacked = repacked.substr(1, repacked.size() - 2);
    place_.refuse("a chunk holds parts of images", "chunks of whole images",
                  "chunks of " + shape_text(chunk),
                  str(create(place_, ", chunks=" + whole), ", or h5repack -l ", place_.dataset,
                      ":CHUNK=", repacked, " OLD NEW"));
  }

  void add_chunk(std::int64_t row, Filters const& filters) {
    std::vector<hsize_t> at(array_.shape.size(), 0);
    at.front() = static_cast<hsize_t>(row);
    unsigned left_out = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    check(H5Dget_chunk_info_by_coord(dataset_, at.data(), &left_out, &address, &size),
          "looking for a chunk");
    if (address == HADDR_UNDEF || size == 0)
      place_.refuse(str("the chunk of row ", row, " was never written"), "bytes", "none",
                    write_all);
    if (user_block_ > 0 && leaves_out_user_block()) address += user_block_;
    bool const is_whole = array_.rows_per_piece <= array_.shape.front() - row;
    StoredPiece const piece{.offset = static_cast<std::int64_t>(address),
                            .size = static_cast<std::int64_t>(size),
                            .packed = filters.pack(left_out, is_whole)};
    check_size(piece, row);
    array_.pieces.push_back(piece);
  }

  void check_size(StoredPiece const& piece, std::int64_t row) const {
    if (piece.offset < 0 || piece.size < 0 || piece.offset > file_bytes_ ||
        piece.size > file_bytes_ - piece.offset)
      place_.refuse(str("the chunk of row ", row, " is cut"),
                    str(piece.size, " bytes from byte ", piece.offset, " on"),
                    str("a file of ", file_bytes_, " bytes"), copy_again);
    auto const rows = piece.packed ? piece.size * best_ratio / row_ : piece.size / row_;
    if (array_.rows_per_piece > rows + 1 || (!piece.packed && array_.rows_per_piece > rows))
      place_.refuse(str("the chunk of row ", row, " is too short"),
                    str(array_.rows_per_piece, " rows of ", row_, " bytes"),
                    str(piece.size, " bytes"), copy_again);
  }

  ArrayPlace const& place_;
  hid_t dataset_;
  StoredArray& array_;
  std::int64_t row_;
  std::int64_t file_bytes_ = 0;
  hsize_t user_block_ = 0;
};

}  // namespace

StoredArray find_pieces(ArrayPlace const& place, Handle const& dataset,
                        std::vector<std::int64_t> const& shape, std::int64_t row_bytes) {
  StoredArray array{.shape = shape};
  PieceFinder(place, dataset.get(), array, row_bytes).find();
  return array;
}

}  // namespace stratagem::h5
