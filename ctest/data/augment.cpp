#include "data/augment.hpp"

#include <array>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

using Plane = std::vector<std::uint8_t>;

Plane moved(Plane const& plane, std::int64_t edge, Move const& move) {
  Plane result(plane.size(), 99);
  move_plane(plane.data(), result.data(), edge, move);
  return result;
}

TEST(Augment, MovesAPlane) {
  Plane const plane{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(moved(plane, 3, {}), plane);
  EXPECT_EQ(moved(plane, 3, {.right = 1}), (Plane{0, 1, 2, 0, 4, 5, 0, 7, 8}));
  EXPECT_EQ(moved(plane, 3, {.right = -1, .down = 1}), (Plane{0, 0, 0, 2, 3, 0, 5, 6, 0}));
  EXPECT_EQ(moved(plane, 3, {.down = -2}), (Plane{7, 8, 9, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(moved(plane, 3, {.flip = true}), (Plane{3, 2, 1, 6, 5, 4, 9, 8, 7}));
  EXPECT_EQ(moved(plane, 3, {.right = 1, .flip = true}), (Plane{0, 3, 2, 0, 6, 5, 0, 9, 8}));
  EXPECT_EQ(moved(plane, 3, {.right = -1, .flip = true}), (Plane{2, 1, 0, 5, 4, 0, 8, 7, 0}));
  EXPECT_EQ(moved(plane, 3, {.right = 4, .down = 4}), Plane(9, 0));
}

auto fields(Move const& move) {
  return std::array{move.right, move.down, move.flip ? 1 : 0};
}

TEST(Augment, IsAFunctionOfSeedEpochAndImage) {
  Augmenter const augmenter(Augmentation::standard, 1, true);
  int differing = 0;
  for (std::int64_t image = 0; image < 100; ++image) {
    auto const move = fields(augmenter.move(3, image));
    EXPECT_EQ(move, fields(Augmenter(Augmentation::standard, 1, true).move(3, image)));
    differing += move != fields(augmenter.move(4, image));
    differing += move != fields(Augmenter(Augmentation::standard, 2, true).move(3, image));
  }
  EXPECT_GT(differing, 180);
}

TEST(Augment, EveryCropIsEquallyLikelyAndDigitsAreNotFlipped) {
  Augmenter const augmenter(Augmentation::standard, 1, true);
  Augmenter const digits(Augmentation::standard, 1, false);
  std::map<int, int> right, down;
  int flips = 0;
  for (std::int64_t image = 0; image < 9000; ++image) {
    auto const move = augmenter.move(0, image);
    ++right[move.right];
    ++down[move.down];
    flips += move.flip ? 1 : 0;
    EXPECT_FALSE(digits.move(0, image).flip);
  }
  EXPECT_NEAR(flips, 4500, 5 * 48);
  for (auto const* counts : {&right, &down}) {
    EXPECT_EQ(counts->size(), 9u);
    EXPECT_EQ(counts->begin()->first, -4);
    for (auto const& [offset, count] : *counts) EXPECT_NEAR(count, 1000, 5 * 30) << offset;
  }
}

TEST(Augment, NoneLeavesImagesAlone) {
  Augmenter const none(Augmentation::none, 1, true);
  for (std::int64_t image = 0; image < 100; ++image)
    EXPECT_EQ(fields(none.move(0, image)), fields(Move{}));
}

auto fields(Crop const& crop) {
  auto const& region = crop.region;
  return std::array<std::int64_t, 5>{region.top, region.left, region.height, region.width,
                                     crop.flip ? 1 : 0};
}

TEST(Augment, CropsAreAFunctionOfSeedEpochAndImage) {
  Augmenter const augmenter(Augmentation::standard, 1, true);
  ImageSize const size{300, 400};
  int differing = 0;
  for (std::int64_t image = 0; image < 100; ++image) {
    auto const crop = fields(augmenter.crop(3, image, size, 224));
    EXPECT_EQ(crop, fields(Augmenter(Augmentation::standard, 1, true).crop(3, image, size, 224)));
    differing += crop != fields(augmenter.crop(4, image, size, 224));
    differing +=
        crop != fields(Augmenter(Augmentation::standard, 2, true).crop(3, image, size, 224));
  }
  EXPECT_GT(differing, 195);
}

TEST(Augment, CropsLieInTheImageWithTheWantedAreaAndProportion) {
  Augmenter const augmenter(Augmentation::standard, 1, true);
  int flips = 0, small = 0;
  double tallest = 1, widest = 1;
  constexpr int images = 5000;
  for (std::int64_t image = 0; image < images; ++image) {
    auto const [region, flip] = augmenter.crop(0, image, {400, 500}, 224);
    flips += flip ? 1 : 0;
    EXPECT_GE(std::min(region.top, region.left), 0);
    EXPECT_LE(region.top + region.height, 400);
    EXPECT_LE(region.left + region.width, 500);
    auto const height = static_cast<double>(region.height);
    auto const width = static_cast<double>(region.width);
    auto const area = height * width / (400 * 500);
    EXPECT_GE(area, 0.079);
    small += area < 0.31 ? 1 : 0;
    tallest = std::min(tallest, width / height);
    widest = std::max(widest, width / height);
  }
  EXPECT_NEAR(flips, images / 2, 5 * 36);
  // Areas are equally likely, but large ones do not fit with every proportion.
  EXPECT_GT(small, images / 4);
  EXPECT_LT(small, images / 3);
  EXPECT_NEAR(tallest, 0.75, 0.01);
  EXPECT_NEAR(widest, 4.0 / 3.0, 0.01);
}

TEST(Augment, ImagesInWhichNoDrawnPartFitsAreTakenInTheMiddle) {
  Augmenter const augmenter(Augmentation::standard, 1, false);
  int in_the_middle = 0;
  for (std::int64_t image = 0; image < 200; ++image) {
    auto const [region, flip] = augmenter.crop(0, image, {10, 1000}, 224);
    EXPECT_FALSE(flip);
    in_the_middle += region.height == 10 && region.width == 13 && region.left == 493 ? 1 : 0;
  }
  EXPECT_GT(in_the_middle, 150);
  EXPECT_EQ(fields(augmenter.crop(0, 0, {1, 1}, 224)), fields(Crop{{0, 0, 1, 1}}));
}

TEST(Augment, TheMiddleIsEvaluated) {
  Augmenter const none;
  EXPECT_EQ(fields(none.crop(5, 7, {256, 400}, 224)), fields(Crop{{16, 88, 224, 224}}));
  EXPECT_EQ(fields(none.crop(5, 7, {224, 224}, 224)), fields(Crop{{0, 0, 224, 224}}));
  EXPECT_EQ(fields(none.crop(5, 7, {224, 225}, 224)), fields(Crop{{14, 14, 196, 196}}));
  EXPECT_EQ(fields(none.crop(5, 7, {1, 9}, 224)), fields(Crop{{0, 4, 1, 1}}));
}

}  // namespace
}  // namespace stratagem
