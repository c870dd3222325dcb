#include "data/hdf5/hdf5_images.hpp"

#include <gtest/gtest.h>

#include "data/files.hpp"
#include "data/hdf5_file.hpp"

namespace stratagem {
namespace {

using test::expect_bad_data;
using test::Hdf5Storage;
using test::some_pixels;
using test::write_hdf5;

constexpr hsize_t count = 10, height = 4, width = 5, channels = 3;

std::vector<std::int64_t> labels_of(std::size_t images) {
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < images; ++i) labels.push_back(static_cast<std::int64_t>(i % 3));
  return labels;
}

/// [height, width, 3] of image `i` in `pixels`, which is [n, height, width, 3].
std::vector<std::uint8_t> image_of(std::vector<std::uint8_t> const& pixels, std::size_t i) {
  auto const bytes = height * width * channels;
  auto const begin = pixels.begin() + static_cast<std::ptrdiff_t>(i * bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
}

std::vector<std::uint8_t> channels_first(std::vector<std::uint8_t> const& pixels) {
  std::vector<std::uint8_t> turned(pixels.size());
  constexpr auto plane = height * width;
  for (std::size_t i = 0; i < pixels.size() / (plane * channels); ++i)
    for (std::size_t p = 0; p < plane; ++p)
      for (std::size_t c = 0; c < channels; ++c)
        turned[(i * channels + c) * plane + p] = pixels[(i * plane + p) * channels + c];
  return turned;
}

std::vector<std::uint8_t> read(Hdf5Images const& images, std::int64_t image, Region const& region,
                               std::int64_t wanted = channels) {
  ReadBuffer buffer;
  images.read(
      image, [&](ImageSize const&) { return region; }, {1, 1}, wanted, buffer);
  EXPECT_EQ(buffer.pixels.height, region.height);
  EXPECT_EQ(buffer.pixels.width, region.width);
  EXPECT_EQ(buffer.pixels.channels, wanted);
  return buffer.pixels.values;
}

TEST(Hdf5Images, ReadsEveryWayOfStoring) {
  auto const pixels = some_pixels(count * height * width * channels);
  for (auto const& storage :
       {Hdf5Storage{}, Hdf5Storage{.rows_per_chunk = 1}, Hdf5Storage{.rows_per_chunk = 4},
        Hdf5Storage{.rows_per_chunk = 4, .gzip = 4},
        Hdf5Storage{.rows_per_chunk = 4, .gzip = 4, .partial_unpacked = true},
        Hdf5Storage{.rows_per_chunk = count, .gzip = 1}}) {
    test::Scratch folder;
    write_hdf5(folder / "last.h5", {count, height, width, channels}, pixels, labels_of(count),
               storage);
    write_hdf5(folder / "first.h5", {count, channels, height, width}, channels_first(pixels),
               labels_of(count), storage);
    for (auto const* name : {"last.h5", "first.h5"}) {
      Hdf5Images const images({folder / name});
      EXPECT_EQ(images.channels(), 3);
      EXPECT_EQ(images.labels(), labels_of(count));
      EXPECT_EQ(images.classes(), 3);
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(read(images, static_cast<std::int64_t>(i), {0, 0, height, width}),
                  image_of(pixels, i))
            << name << ", chunks of " << storage.rows_per_chunk;
    }
  }
}

TEST(Hdf5Images, ReadsPartsAndRepeatsGrey) {
  test::Scratch folder;
  auto const pixels = some_pixels(2 * 5 * 4);
  write_hdf5(folder / "grey.h5", {2, 5, 4, 1}, pixels, {0, 1});
  Hdf5Images const images({folder / "grey.h5"});
  auto const at = [&](std::size_t y, std::size_t x) { return pixels[20 + 4 * y + x]; };
  EXPECT_EQ(read(images, 1, {1, 2, 2, 2}, 1),
            (std::vector{at(1, 2), at(1, 3), at(2, 2), at(2, 3)}));
  EXPECT_EQ(read(images, 1, {2, 1, 1, 2}, 3),
            (std::vector{at(2, 1), at(2, 1), at(2, 1), at(2, 2), at(2, 2), at(2, 2)}));
}

TEST(Hdf5Images, FilesFollowEachOtherAndPiecesAreRuns) {
  test::Scratch folder;
  auto const pixels = some_pixels(count * height * width * channels);
  write_hdf5(folder / "a.h5", {count, height, width, channels}, pixels, labels_of(count),
             {.rows_per_chunk = 4});
  write_hdf5(folder / "b.h5", {2, height, width, channels}, pixels, {7, 8});
  Hdf5Images const images({folder / "a.h5", folder / "b.h5"});
  EXPECT_EQ(images.labels().size(), count + 2);
  EXPECT_EQ(images.classes(), 9);
  EXPECT_EQ(read(images, count + 1, {0, 0, height, width}), image_of(pixels, 1));
  EXPECT_EQ(images.name(count + 1), (folder / "b.h5").string() + ": images[1]");
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (auto const& [begin, end] : images.runs().parts) runs.emplace_back(begin, end);
  EXPECT_EQ(runs, (decltype(runs){{0, 4}, {4, 8}, {8, 10}, {10, 12}}));
}

TEST(Hdf5Images, PackedPiecesAreMixedAsFarAsTheyAreKept) {
  test::Scratch folder;
  write_hdf5(folder / "a.h5", {count, height, width, channels},
             some_pixels(count * height * width * channels), labels_of(count),
             {.rows_per_chunk = 4, .gzip = 4});
  EXPECT_EQ(Hdf5Images({folder / "a.h5"}).runs().window, 64);
}

TEST(Hdf5Images, TheLayoutCanBeSaid) {
  test::Scratch folder;
  auto const pixels = some_pixels(2 * 3 * 4 * 3);
  write_hdf5(folder / "a.h5", {2, 3, 4, 3}, pixels, {0, 1}, {.layout = "NCHW"});
  Hdf5File const said(folder / "a.h5");
  EXPECT_EQ(said.channels, 3);
  EXPECT_EQ(said.height, 4);
  write_hdf5(folder / "b.h5", {2, 3, 4, 2}, some_pixels(48), {0, 1}, {.layout = "NHWC"});
  EXPECT_EQ(hdf5_channels(folder / "b.h5"), 2);
  write_hdf5(folder / "c.h5", {2, 3, 4, 3}, pixels, {0, 1});
  expect_bad_data([&] { Hdf5File const file(folder / "c.h5"); }, "does not tell the order");
  write_hdf5(folder / "d.h5", {2, 4, 5, 6}, some_pixels(240), {0, 1});
  expect_bad_data([&] { Hdf5File const file(folder / "d.h5"); }, "found 4 and 6");
  write_hdf5(folder / "e.h5", {2, 3, 4, 3}, pixels, {0, 1}, {.layout = "CHWN"});
  expect_bad_data([&] { Hdf5File const file(folder / "e.h5"); },
                  "expected \"NHWC\" or \"NCHW\", found \"CHWN\"");
}

TEST(Hdf5Images, RefusesLabelsThatAreNone) {
  test::Scratch folder;
  auto const refuse = [&](std::vector<std::int64_t> const& labels, Hdf5Storage const& storage,
                          char const* fragment) {
    write_hdf5(folder / "a.h5", {2, 5, 4, 1}, some_pixels(40), labels, storage);
    expect_bad_data([&] { Hdf5File const file(folder / "a.h5"); }, fragment);
  };
  refuse({0, -1}, {}, "labels[1] is out of range (expected 0 to 65535, found -1)");
  refuse({70000, 0}, {}, "labels[0] is out of range");
  refuse({0, 2}, {.classes = 2}, "expected 0 to 1, found 2");
  refuse({0}, {}, "dataset labels: its shape (expected [2], found [1])");
}

TEST(Hdf5Images, RefusesFilesThatDiffer) {
  test::Scratch folder;
  write_hdf5(folder / "a.h5", {2, 5, 4, 1}, some_pixels(40), {0, 1});
  write_hdf5(folder / "b.h5", {2, 5, 4, 3}, some_pixels(120), {0, 1});
  write_hdf5(folder / "c.h5", {2, 5, 4, 1}, some_pixels(40), {0, 1}, {.classes = 4});
  expect_bad_data(
      [&] {
        Hdf5Images const images({folder / "a.h5", folder / "b.h5"});
      },
      "expected 1 channels, 0 classes, found 3 channels");
  expect_bad_data(
      [&] {
        Hdf5Images const images({folder / "a.h5", folder / "c.h5"});
      },
      "it differs from");
}

TEST(Hdf5Images, RefusesAPackedPieceThatIsDamaged) {
  test::Scratch folder;
  auto const path = folder / "a.h5";
  write_hdf5(path, {count, height, width, channels}, some_pixels(count * height * width * channels),
             labels_of(count), {.rows_per_chunk = 2, .gzip = 9});
  auto const piece = Hdf5File(path).images.pieces.at(1);
  auto content = test::file_content(path);
  content[static_cast<std::size_t>(piece.offset) + 2] ^= 0x55;
  test::write_file(path, content);
  Hdf5Images const images({path});
  EXPECT_EQ(read(images, 4, {0, 0, 1, 1}).size(), 3u) << "another piece";
  expect_bad_data([&] { read(images, 2, {0, 0, 1, 1}); }, "found a corrupt stream");
}

}  // namespace
}  // namespace stratagem
