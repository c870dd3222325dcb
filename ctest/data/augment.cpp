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

}  // namespace
}  // namespace stratagem
