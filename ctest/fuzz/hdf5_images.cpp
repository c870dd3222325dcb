#include "data/hdf5/hdf5_images.hpp"

#include <algorithm>
#include <string>

#include <hdf5.h>

#include "fuzz/input_file.hpp"
#include "h5/error.hpp"

using namespace stratagem;

namespace {

/// The input, a byte at a time; zeros behind its end.
class Bytes {
 public:
  explicit Bytes(std::span<std::uint8_t const> bytes) : bytes_(bytes) {}

  unsigned next() {
    if (bytes_.empty()) return 0;
    auto const value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  unsigned below(unsigned count) { return next() % count; }
  bool rarely() { return next() > 240; }

 private:
  std::span<std::uint8_t const> bytes_;
};

using Shape = std::vector<hsize_t>;

h5::Handle type_of(Bytes& bytes, hid_t usual) {
  if (!bytes.rarely()) return h5::Handle(H5Tcopy(usual));
  switch (bytes.below(6)) {
    case 0:
      return h5::Handle(H5Tcopy(H5T_NATIVE_INT8));
    case 1:
      return h5::Handle(H5Tcopy(H5T_STD_U16BE));
    case 2:
      return h5::Handle(H5Tcopy(H5T_NATIVE_FLOAT));
    case 3:
      return h5::Handle(H5Tcopy(H5T_NATIVE_UINT64));
    case 4:
      return h5::Handle(H5Tcreate(H5T_COMPOUND, 8));
    default:
      return h5::Handle(H5Tcopy(H5T_C_S1));
  }
}

Shape shape_of(Bytes& bytes, std::size_t usual_rank) {
  Shape shape(bytes.rarely() ? bytes.below(6) : usual_rank);
  for (auto& size : shape) {
    size = bytes.below(8);
    if (bytes.rarely()) size = hsize_t{1} << bytes.below(62);
  }
  return shape;
}

/// Creates it, with any values, or nothing where HDF5 refuses it.
h5::Handle add_array(h5::Handle const& file, char const* name, Bytes& bytes, hid_t usual_type,
                     Shape const& shape) {
  auto const type = type_of(bytes, usual_type);
  auto const rank = static_cast<int>(shape.size());
  h5::Handle const space(H5Screate_simple(rank, shape.data(), nullptr));
  h5::Handle const creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
  if (bytes.below(2) == 1) {
    auto chunk = shape;
    for (auto& size : chunk) size = std::clamp<hsize_t>(size, 1, 64);
    if (!chunk.empty()) chunk.front() = 1 + bytes.below(8);
    if (bytes.rarely() && !chunk.empty()) chunk.back() = 1 + bytes.below(8);
    H5Pset_chunk(creation.get(), rank, chunk.data());
    if (bytes.below(2) == 1) H5Pset_deflate(creation.get(), bytes.below(10));
    if (bytes.rarely()) H5Pset_shuffle(creation.get());
    if (bytes.rarely()) H5Pset_fletcher32(creation.get());
  } else if (bytes.rarely()) {
    H5Pset_layout(creation.get(), H5D_COMPACT);
  }
  h5::Handle set(H5Dcreate2(file.get(), name, type.get(), space.get(), H5P_DEFAULT, creation.get(),
                            H5P_DEFAULT));
  auto const elements = H5Sget_simple_extent_npoints(space.get());
  if (!set.valid() || elements < 0 || elements > 5000 || bytes.rarely()) return set;
  std::vector<std::uint8_t> values(static_cast<std::size_t>(elements) * H5Tget_size(type.get()));
  for (std::size_t i = 0; i < values.size(); i += 8)
    values[i] = static_cast<std::uint8_t>(bytes.next());
  H5Dwrite(set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  return set;
}

/// Text of one kind or another, a number, or none.
void add_attribute(hid_t object, char const* name, Bytes& bytes) {
  auto const kind = bytes.below(6);
  if (kind == 0) return;
  std::string text(bytes.below(2) == 0 ? "NHWC" : "NCHW");
  if (bytes.rarely()) text.assign(bytes.next(), static_cast<char>(bytes.next()));
  Shape const size{bytes.rarely() ? hsize_t{1} << bytes.below(12) : 1 + bytes.below(4)};
  h5::Handle const space(kind == 1   ? H5Screate(H5S_NULL)
                         : kind == 2 ? H5Screate_simple(1, size.data(), nullptr)
                                     : H5Screate(H5S_SCALAR));
  h5::Handle const type(H5Tcopy(kind == 3 ? H5T_NATIVE_INT32 : H5T_C_S1));
  if (kind == 4)
    H5Tset_size(type.get(), H5T_VARIABLE);
  else if (kind != 3)
    H5Tset_size(type.get(), std::max<std::size_t>(text.size(), 1));
  h5::Handle const attribute(
      H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
  if (!attribute.valid() || kind == 1 || kind == 2) return;
  char const* pointer = text.c_str();
  text.resize(std::max<std::size_t>(text.size(), 8));
  H5Awrite(attribute.get(), type.get(),
           kind == 4 ? static_cast<void const*>(&pointer) : text.data());
}

void write(std::filesystem::path const& path, Bytes bytes) {
  h5::Handle const file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  auto const shape = shape_of(bytes, 4);
  auto const images = add_array(file, "images", bytes, H5T_NATIVE_UINT8, shape);
  if (images.valid()) add_attribute(images.get(), "layout", bytes);
  auto const count = shape.empty() || bytes.rarely() ? shape_of(bytes, 1) : Shape{shape.front()};
  add_array(file, "labels", bytes, H5T_NATIVE_INT64, count);
  add_attribute(file.get(), "classes", bytes);
}

}  // namespace

/// A file of images whose shapes, types, layouts and attributes are the input's.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static test::Scratch const folder;
  static bool const quiet = [] {
    h5::initialise_library();
    return true;
  }();
  test::require(quiet);
  auto const path = folder / "a.h5";
  write(path, Bytes({data, size}));
  test::reads_or_refuses(ExitCode::bad_data, [&] {
    Hdf5Images const images({path});
    auto const labels = images.labels();
    auto const classes = images.classes();
    for (auto const label : labels) test::require(0 <= label && label < classes);
    ReadBuffer buffer;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(std::ssize(labels), 3); ++i) {
      images.read(
          i,
          [](ImageSize const& of) {
            return Region{of.height / 2, 0, of.height - of.height / 2, of.width};
          },
          {1, 1}, images.channels(), buffer);
      auto const& pixels = buffer.pixels;
      test::require(std::ssize(pixels.values) == pixels.height * pixels.width * images.channels());
    }
  });
  return 0;
}
