#include "h5/stored_array.hpp"

#include <array>
#include <cstring>
#include <fstream>
#include <span>

#include <hdf5.h>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/files/file_kind.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "h5/array_place.hpp"
#include "h5/error.hpp"
#include "h5/piece_finder.hpp"

namespace stratagem::h5 {
namespace {

constexpr std::size_t most_fixed_text = 1 << 16;  // [B], as attributes can hold
constexpr std::size_t most_named = 8;             // datasets, in a message

std::vector<std::int64_t> shape_of(hid_t space) {
  auto const dimensions = H5Sget_simple_extent_ndims(space);
  check(dimensions, "reading a shape");
  std::vector<hsize_t> sizes(static_cast<std::size_t>(dimensions));
  check(H5Sget_simple_extent_dims(space, sizes.data(), nullptr), "reading a shape");
  return {sizes.begin(), sizes.end()};
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

/// Of one byte each, of any order.
bool is_unsigned_byte(hid_t type) {
  return H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == 1 &&
         H5Tget_sign(type) == H5T_SGN_NONE && H5Tget_precision(type) == 8;
}

/// Of a dataset, which must be of bytes, and not empty.
std::vector<std::int64_t> shape_of_bytes(ArrayPlace const& place, hid_t dataset,
                                         std::size_t dimensions) {
  auto const type = owned(H5Dget_type(dataset), "reading a type");
  if (!is_unsigned_byte(type.get()))
    place.refuse("its elements are not bytes", "8-bit unsigned integers", name_of(type.get()),
                 "convert it with numpy's astype(\"uint8\"), so that white is 255");
  auto const space = owned(H5Dget_space(dataset), "reading a shape");
  auto const shape = shape_of(space.get());
  if (shape.size() != dimensions)
    place.refuse("its shape", str(dimensions, " dimensions"), shape_text(shape),
                 "reshape it to [n, height, width, channels]; grey images have 1 channel");
  if (shape.front() < 1)
    place.refuse("it is empty", "images", shape_text(shape), "write images into it");
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

/// What the library refuses is the fault of the file.
template <class Read>
auto reading(std::filesystem::path const& path, Read const& read) {
  try {
    return read();
  } catch (Hdf5Error const& failure) {
    throw Error(
        ExitCode::bad_data, str(path.string(), ": ", failure.what()), {},
        "copy it again, or write it for older libraries, as h5py does with libver=\"v110\"");
  }
}

/// Of an attribute of one element; empty if it is none, or long.
std::optional<std::string> text_of(hid_t attribute, std::string const& action) {
  auto const type = owned(H5Aget_type(attribute), action);
  if (H5Tget_class(type.get()) != H5T_STRING) return std::nullopt;
  if (H5Tis_variable_str(type.get()) > 0) {
    char* read = nullptr;
    check(H5Aread(attribute, type.get(), &read), action);
    std::string value = read != nullptr ? read : "";
    H5free_memory(read);
    return value;
  }
  auto const bytes = H5Tget_size(type.get());
  if (bytes > most_fixed_text) return std::nullopt;
  std::string value(bytes, '\0');
  check(H5Aread(attribute, type.get(), value.data()), action);
  value.resize(::strnlen(value.data(), value.size()));
  return value;
}

/// What a file is by its first bytes, if that is not HDF5.
std::string kind_in(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, telling_bytes> start{};
  file.read(start.data(), start.size());
  auto const read = static_cast<std::size_t>(file.gcount());
  auto const* const kind = kind_of(std::as_bytes(std::span(start)).first(read));
  bool const other = kind != nullptr && kind->content != FileKind::Content::hdf5;
  return other ? std::string(kind->name) : "";
}

/// "x, y", for a message.
std::string names_in(hid_t file) {
  std::vector<std::string> names;
  check(H5Literate(
            file, H5_INDEX_NAME, H5_ITER_INC, nullptr,
            [](hid_t, char const* name, H5L_info_t const*, void* out) -> herr_t {
              auto& found = *static_cast<std::vector<std::string>*>(out);
              found.emplace_back(found.size() < most_named ? printable(name) : "...");
              return found.size() > most_named;
            },
            &names),
        "listing it");
  return names.empty() ? "nothing" : join(names, ", ");
}

std::string cure_of_labels(std::vector<std::int64_t> const& shape, std::int64_t count) {
  bool const per_image = shape.size() == 2 && shape.front() == count;
  if (per_image && shape.back() == 1) return "write its column: labels[:, 0] of numpy";
  if (per_image) return "write one label for each image: argmax(1) of numpy, if they are one-hot";
  return "write one label for each image";
}

}  // namespace

ArrayFile::ArrayFile(std::filesystem::path const& path)
    : path_(path), file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {
  if (file_.valid()) return;
  auto const kind = kind_in(path);
  if (kind.empty()) reading(path, [] { throw Hdf5Error("opening it"); });
  throw Error(ExitCode::bad_data, path.string() + ": opening it failed",
              "its first bytes say that it is " + kind, "name it as what it is");
}

Handle ArrayFile::open(std::string const& dataset) const {
  if (!has(dataset))
    throw bad_data(path_.string(), "there is no dataset " + dataset, dataset, names_in(file_.get()),
                   str("name it so: file.move(\"OLD\", \"", dataset, "\") in h5py"));
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
    ArrayPlace const place{path_, dataset};
    auto const opened = open(dataset);
    auto const shape = shape_of_bytes(place, opened.get(), dimensions);
    auto const row = row_bytes(shape);
    if (!row)
      place.refuse("its shape", "images of at most 1 GiB", shape_text(shape), "cut the images");
    return find_pieces(place, opened, shape, *row);
  });
}

std::vector<std::byte> ArrayFile::row(std::string const& dataset, std::int64_t row) const {
  return reading(path_, [&] {
    auto const opened = open(dataset);
    auto const all = owned(H5Dget_space(opened.get()), "reading a shape");
    auto const shape = shape_of(all.get());
    std::vector<hsize_t> begin(shape.size(), 0), count(shape.begin(), shape.end());
    begin.front() = static_cast<hsize_t>(row);
    count.front() = 1;
    check(H5Sselect_hyperslab(all.get(), H5S_SELECT_SET, begin.data(), nullptr, count.data(),
                              nullptr),
          "choosing a row");
    auto const one = owned(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                           "choosing a row");
    std::vector<std::byte> values(static_cast<std::size_t>(row_bytes(shape).value_or(0)));
    check(H5Dread(opened.get(), H5T_NATIVE_UINT8, one.get(), all.get(), H5P_DEFAULT, values.data()),
          str("reading row ", row, " of dataset ", dataset));
    return values;
  });
}

std::vector<std::int64_t> ArrayFile::integers(std::string const& dataset,
                                              std::int64_t count) const {
  return reading(path_, [&] {
    ArrayPlace const place{path_, dataset};
    auto const opened = open(dataset);
    auto const type = owned(H5Dget_type(opened.get()), "reading a type");
    if (H5Tget_class(type.get()) != H5T_INTEGER)
      place.refuse("its elements", "integers", name_of(type.get()),
                   "convert it with numpy's astype(\"int64\")");
    auto const space = owned(H5Dget_space(opened.get()), "reading a shape");
    auto const shape = shape_of(space.get());
    if (shape != std::vector{count})
      place.refuse("its shape", str("[", count, "]"), shape_text(shape),
                   cure_of_labels(shape, count));
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
    auto const space = owned(H5Aget_space(found.get()), action);
    auto value = H5Sget_simple_extent_npoints(space.get()) == 1 ? text_of(found.get(), action)
                                                                : std::nullopt;
    if (!value) {
      auto const type = owned(H5Aget_type(found.get()), action);
      ArrayPlace{path_, dataset}.refuse("attribute " + attribute, "one short text",
                                        name_of(type.get()), "write it as text, or remove it");
    }
    return value;
  });
}

std::optional<FileAttribute> ArrayFile::attribute(std::string const& name) const {
  return reading(path_, [&]() -> std::optional<FileAttribute> {
    if (H5Aexists(file_.get(), name.c_str()) <= 0) return std::nullopt;
    auto const action = str("reading attribute ", name);
    auto const found = owned(H5Aopen(file_.get(), name.c_str(), H5P_DEFAULT), action);
    auto const space = owned(H5Aget_space(found.get()), action);
    auto const type = owned(H5Aget_type(found.get()), action);
    auto const elements = H5Sget_simple_extent_npoints(space.get());
    check(elements, action);
    FileAttribute value{.elements = static_cast<std::int64_t>(elements)};
    if (H5Sget_simple_extent_type(space.get()) != H5S_SCALAR) return value;
    value.text = text_of(found.get(), action);
    if (H5Tget_class(type.get()) == H5T_INTEGER)
      check(H5Aread(found.get(), H5T_NATIVE_INT64, &value.number.emplace()), action);
    return value;
  });
}

}  // namespace stratagem::h5
