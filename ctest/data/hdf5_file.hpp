#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <hdf5.h>

#include "h5/error.hpp"
#include "h5/types.hpp"

namespace stratagem::test {

/// How a test stores the images of a file.
struct Hdf5Storage {
  hsize_t rows_per_chunk = 0;     ///< 0: one block
  unsigned gzip = 0;              ///< level; 0: not packed
  bool partial_unpacked = false;  ///< the last chunk, if it has rows to spare
  std::string layout = {};        ///< attribute of `images`; empty: none
  std::int64_t classes = 0;       ///< elements of the file's attribute; 0: none
};

inline h5::Handle new_hdf5(std::filesystem::path const& path) {
  h5::initialise_library();
  return h5::owned(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "creating");
}

/// A dataset of any type and shape with the values of `data`.
inline h5::Handle add_dataset(h5::Handle const& file, char const* name, hid_t type,
                              std::vector<hsize_t> const& shape, void const* data,
                              Hdf5Storage const& storage = {}) {
  auto const rank = static_cast<int>(shape.size());
  auto const space = h5::owned(H5Screate_simple(rank, shape.data(), nullptr), "shaping");
  auto const creation = h5::owned(H5Pcreate(H5P_DATASET_CREATE), "creating");
  if (storage.rows_per_chunk > 0) {
    auto chunk = shape;
    chunk.front() = storage.rows_per_chunk;
    h5::check(H5Pset_chunk(creation.get(), rank, chunk.data()), "chunking");
    if (storage.partial_unpacked)
      h5::check(H5Pset_chunk_opts(creation.get(), H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS), "packing");
    if (storage.gzip > 0) h5::check(H5Pset_deflate(creation.get(), storage.gzip), "packing");
  }
  auto set = h5::owned(
      H5Dcreate2(file.get(), name, type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
      "creating");
  if (data != nullptr)
    h5::check(H5Dwrite(set.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "writing");
  return set;
}

inline void add_text(h5::Handle const& object, char const* name, std::string const& value) {
  auto const type = h5::text_type(value.size() + 1);
  auto const space = h5::owned(H5Screate(H5S_SCALAR), "shaping");
  auto const attribute = h5::owned(
      H5Acreate2(object.get(), name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), "naming");
  h5::check(H5Awrite(attribute.get(), type.get(), value.c_str()), "writing");
}

/// A file of images as Hdf5Images reads it.
inline void write_hdf5(std::filesystem::path const& path, std::vector<hsize_t> const& shape,
                       std::vector<std::uint8_t> const& pixels,
                       std::vector<std::int64_t> const& labels, Hdf5Storage const& storage = {}) {
  auto const file = new_hdf5(path);
  auto const images = add_dataset(file, "images", H5T_NATIVE_UINT8, shape, pixels.data(), storage);
  add_dataset(file, "labels", H5T_NATIVE_INT64, {labels.size()}, labels.data());
  if (!storage.layout.empty()) add_text(images, "layout", storage.layout);
  if (storage.classes == 0) return;
  auto const count = static_cast<hsize_t>(storage.classes);
  auto const space = h5::owned(H5Screate_simple(1, &count, nullptr), "shaping");
  h5::owned(
      H5Acreate2(file.get(), "classes", H5T_NATIVE_INT64, space.get(), H5P_DEFAULT, H5P_DEFAULT),
      "naming");
}

/// Pixels that tell their place: 0, 7, 14, ... modulo 251.
inline std::vector<std::uint8_t> some_pixels(std::size_t count) {
  std::vector<std::uint8_t> pixels(count);
  for (std::size_t i = 0; i < count; ++i) pixels[i] = static_cast<std::uint8_t>(7 * i % 251);
  return pixels;
}

}  // namespace stratagem::test
