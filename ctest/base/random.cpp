#include "base/random.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// The published vectors of philox4x32-10 are for given keys; the key is a bijection of the seed,
/// and these are the seeds that lead to 0, to all ones, and to digits of pi.
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(CounterRandom(0x4ef72a9baf6ece35, "").block(0, 0),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(CounterRandom(0xc8d90674c6dff761, "").block(~std::uint64_t{0}, ~std::uint64_t{0}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(CounterRandom(0x79c13601d9306d2a, "").block(0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, WordsAreTheBlocksInOrder) {
  CounterRandom const random(7, "order");
  for (std::uint64_t i = 0; i < 12; ++i)
    EXPECT_EQ(random.word(i, 5), random.block(i / 4, 5)[i % 4]);
  auto const block = random.block(9, 2);
  EXPECT_EQ(random.word64(9, 2), std::uint64_t{block[0]} << 32 | block[1]);
}

TEST(Random, SeedAndStreamTellSequencesApart) {
  auto const words = CounterRandom(1, "conv.weight").block(0);
  EXPECT_EQ(words, CounterRandom(1, "conv.weight").block(0));
  EXPECT_NE(words, CounterRandom(2, "conv.weight").block(0));
  EXPECT_NE(words, CounterRandom(1, "conv.bias").block(0));
}

TEST(Random, UnitsStayInTheirIntervals) {
  EXPECT_EQ(to_unit_float(0), 0.0F);
  EXPECT_LT(to_unit_float(~std::uint32_t{0}), 1.0F);
  EXPECT_GT(to_positive_unit(0), 0.0);
  EXPECT_EQ(to_positive_unit(~std::uint32_t{0}), 1.0);
}

TEST(Random, NormalValuesHaveTheMomentsOfAGaussian) {
  CounterRandom const random(3, "moments");
  constexpr int blocks = 25'000;
  double sum = 0, square = 0, fourth = 0, neighbours = 0;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    auto const values = to_normal(random.block(i));
    for (double v : values) sum += v, square += v * v, fourth += v * v * v * v;
    neighbours += values[0] * values[1] + values[2] * values[3];
  }
  constexpr double count = 4.0 * blocks;  // five standard errors each
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(square / count, 1, 5 * std::sqrt(2 / count));
  EXPECT_NEAR(fourth / count, 3, 5 * std::sqrt(96 / count));
  EXPECT_NEAR(neighbours / (count / 2), 0, 5 / std::sqrt(count / 2));
}

}  // namespace
}  // namespace stratagem
