#include "h5/stored_array.hpp"

#include <gtest/gtest.h>

#include "data/files.hpp"
#include "data/hdf5_file.hpp"

namespace stratagem::h5 {
namespace {

using test::add_dataset;
using test::add_text;
using test::expect_bad_data;
using test::new_hdf5;
using test::some_pixels;

TEST(StoredArray, SaysWhereTheBytesAre) {
  test::Scratch folder;
  auto const path = folder / "a.h5";
  auto const pixels = some_pixels(100 * 6);
  {
    auto const file = new_hdf5(path);
    add_dataset(file, "block", H5T_NATIVE_UINT8, {100, 6}, pixels.data());
    add_dataset(file, "chunks", H5T_NATIVE_UINT8, {100, 6}, pixels.data(), {.rows_per_chunk = 30});
  }
  ArrayFile const file(path);
  auto const content = test::file_content(path);
  for (auto const* name : {"block", "chunks"}) {
    auto const array = file.bytes(name, 2);
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{100, 6}));
    for (std::int64_t row = 0; row < 100; ++row) {
      auto const& piece = array.pieces.at(static_cast<std::size_t>(row / array.rows_per_piece));
      auto const at = piece.offset + row % array.rows_per_piece * 6;
      EXPECT_EQ(content.substr(static_cast<std::size_t>(at), 6),
                std::string(pixels.begin() + row * 6, pixels.begin() + row * 6 + 6))
          << name << " " << row;
    }
  }
}

TEST(StoredArray, ReadsIntegersOfAnySize) {
  test::Scratch folder;
  std::vector<std::int16_t> const small{-3, 4};
  std::vector<std::uint64_t> const large{5, 6};
  {
    auto const file = new_hdf5(folder / "a.h5");
    add_dataset(file, "small", H5T_NATIVE_INT16, {2}, small.data());
    add_dataset(file, "large", H5T_NATIVE_UINT64, {2}, large.data());
  }
  ArrayFile const file(folder / "a.h5");
  EXPECT_EQ(file.integers("small", 2), (std::vector<std::int64_t>{-3, 4}));
  EXPECT_EQ(file.integers("large", 2), (std::vector<std::int64_t>{5, 6}));
  expect_bad_data([&] { file.integers("small", 3); }, "expected [3], found [2]");
}

TEST(StoredArray, ReadsTextOfBothKinds) {
  test::Scratch folder;
  {
    auto const file = new_hdf5(folder / "a.h5");
    auto const set = add_dataset(file, "a", H5T_NATIVE_UINT8, {1}, "x");
    add_text(set, "fixed", "NHWC");
    auto const type = owned(H5Tcopy(H5T_C_S1), "copying");
    check(H5Tset_size(type.get(), H5T_VARIABLE), "sizing");
    auto const space = owned(H5Screate(H5S_SCALAR), "shaping");
    auto const attribute = owned(
        H5Acreate2(set.get(), "any", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), "naming");
    char const* value = "NCHW";
    check(H5Awrite(attribute.get(), type.get(), &value), "writing");
    auto const number = owned(
        H5Acreate2(set.get(), "number", H5T_NATIVE_INT64, space.get(), H5P_DEFAULT, H5P_DEFAULT),
        "naming");
  }
  ArrayFile const file(folder / "a.h5");
  EXPECT_EQ(file.text("a", "fixed"), "NHWC");
  EXPECT_EQ(file.text("a", "any"), "NCHW");
  EXPECT_EQ(file.text("a", "none"), std::nullopt);
  EXPECT_FALSE(file.attribute("none"));
  expect_bad_data([&] { file.text("a", "number"); }, "expected one short text, found 64-bit");
}

/// Expects that images with `shape` and `type`, stored so, are refused.
void refuse(hid_t type, std::vector<hsize_t> const& shape, void const* data,
            test::Hdf5Storage const& storage, char const* fragment) {
  test::Scratch folder;
  add_dataset(new_hdf5(folder / "a.h5"), "images", type, shape, data, storage);
  expect_bad_data([&] { ArrayFile(folder / "a.h5").bytes("images", 4); }, fragment);
}

TEST(StoredArray, RefusesWhatIsNoArrayOfBytes) {
  std::vector<double> const zeros(24);
  refuse(H5T_NATIVE_FLOAT, {1, 2, 3, 1}, zeros.data(), {},
         "expected 8-bit unsigned integers, found 32-bit floating point");
  refuse(H5T_NATIVE_INT8, {1, 2, 3, 1}, zeros.data(), {}, "found 8-bit integers");
  refuse(H5T_NATIVE_UINT16, {1, 2, 3, 1}, zeros.data(), {}, "found 16-bit unsigned integers");
  refuse(H5T_NATIVE_UINT8, {2, 3, 1}, zeros.data(), {}, "expected 4 dimensions, found [2, 3, 1]");
  refuse(H5T_NATIVE_UINT8, {0, 2, 3, 1}, nullptr, {}, "it is empty");
  refuse(H5T_NATIVE_UINT8, {1, 0, 3, 1}, nullptr, {}, "images of at most 1 GiB");
  refuse(H5T_NATIVE_UINT8, {1, 40000, 40000, 1}, nullptr, {}, "images of at most 1 GiB");
  refuse(H5T_NATIVE_UINT8, {1, 2, 3, 1}, nullptr, {}, "it was never written");
  refuse(H5T_NATIVE_UINT8, {4, 2, 3, 1}, nullptr, {.rows_per_chunk = 2},
         "the chunk of row 0 was never written");
}

TEST(StoredArray, RefusesChunksOfPartsOfImages) {
  test::Scratch folder;
  {
    auto const file = new_hdf5(folder / "a.h5");
    std::vector<hsize_t> const shape{4, 4, 4, 1}, chunk{4, 2, 4, 1};
    auto const space = owned(H5Screate_simple(4, shape.data(), nullptr), "shaping");
    auto const creation = owned(H5Pcreate(H5P_DATASET_CREATE), "creating");
    check(H5Pset_chunk(creation.get(), 4, chunk.data()), "chunking");
    owned(H5Dcreate2(file.get(), "images", H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT,
                     creation.get(), H5P_DEFAULT),
          "creating");
  }
  expect_bad_data([&] { ArrayFile(folder / "a.h5").bytes("images", 4); },
                  "expected chunks of whole images, found chunks of [4, 2, 4, 1]");
}

TEST(StoredArray, RefusesOtherFilters) {
  test::Scratch folder;
  auto const pixels = some_pixels(16);
  {
    auto const file = new_hdf5(folder / "a.h5");
    std::vector<hsize_t> const shape{4, 4};
    auto const space = owned(H5Screate_simple(2, shape.data(), nullptr), "shaping");
    auto const creation = owned(H5Pcreate(H5P_DATASET_CREATE), "creating");
    check(H5Pset_chunk(creation.get(), 2, shape.data()), "chunking");
    check(H5Pset_fletcher32(creation.get()), "summing");
    auto const set = owned(H5Dcreate2(file.get(), "a", H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT,
                                      creation.get(), H5P_DEFAULT),
                           "creating");
    check(H5Dwrite(set.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, pixels.data()),
          "writing");
  }
  expect_bad_data([&] { ArrayFile(folder / "a.h5").bytes("a", 2); },
                  "expected gzip or none, found filter 3");
}

TEST(StoredArray, RefusesFilesThatAreCut) {
  test::Scratch folder;
  auto const pixels = some_pixels(4000);
  for (hsize_t const rows : {hsize_t{0}, hsize_t{100}}) {
    auto const path = folder / "a.h5";
    add_dataset(new_hdf5(path), "images", H5T_NATIVE_UINT8, {1000, 4}, pixels.data(),
                {.rows_per_chunk = rows});
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
    expect_bad_data([&] { ArrayFile(path).bytes("images", 2); }, path.string());
  }
  test::write_file(folder / "b.h5", "no HDF5 at all");
  expect_bad_data([&] { ArrayFile const file(folder / "b.h5"); }, "opening it failed");
  expect_bad_data([&] { ArrayFile const file(folder / "none.h5"); }, "opening it failed");
  auto const file = new_hdf5(folder / "c.h5");
  expect_bad_data([&] { ArrayFile(folder / "c.h5").bytes("images", 4); }, "there is no dataset");
}

}  // namespace
}  // namespace stratagem::h5
