#include "optim/exact_square_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace stratagem {
namespace {

/// Of every size a float can have.
std::vector<float> wild_floats(std::size_t count) {
  CounterRandom const random(1, "wild");
  std::vector<float> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto const exponent = static_cast<int>(random.word(2 * i) % 250) - 125;
    values.push_back(std::ldexp(to_unit_float(random.word(2 * i + 1)) - 0.5F, exponent));
  }
  return values;
}

double exact(std::vector<float> const& values) {
  ExactSquareSum sum;
  sum.add(values);
  return sum.value();
}

TEST(ExactSquareSum, DoesNotDependOnTheOrder) {
  auto values = wild_floats(10'000);
  auto const forwards = exact(values);
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(exact(values), forwards);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(exact(values), forwards);
}

TEST(ExactSquareSum, DoesNotDependOnTheCut) {
  auto const values = wild_floats(1'000);
  std::span<float const> const all(values);
  for (std::size_t const cut : {0, 1, 37, 999}) {
    ExactSquareSum low, high;
    low.add(all.first(cut));
    high.add(all.subspan(cut));
    high.add(low);
    EXPECT_EQ(high.value(), exact(values)) << cut;
  }
}

TEST(ExactSquareSum, LosesNoSmallTerms) {
  std::vector<float> values(100'000, 1e-9F);
  values.push_back(1e9F);
  auto const small = 1e5L * static_cast<long double>(1e-9F) * 1e-9F;
  auto const large = static_cast<long double>(1e9F) * 1e9F;
  EXPECT_EQ(exact(values), static_cast<double>(large + small));
  values.pop_back();
  EXPECT_NEAR(exact(values), static_cast<double>(small), 1e-15 * static_cast<double>(small));
}

TEST(ExactSquareSum, CountsDoublesAndTheSmallestFloats) {
  ExactSquareSum sum;
  sum.add(std::vector{3.0, -4.0});
  EXPECT_EQ(sum.value(), 25);
  auto const tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(exact({tiny, tiny}), 2 * static_cast<double>(tiny) * static_cast<double>(tiny));
  ExactSquareSum denormal;
  denormal.add(std::vector{1e-160, 1e-160});  // the squares are denormal
  EXPECT_NEAR(denormal.value(), 2e-320, 1e-322);
  EXPECT_EQ(exact({}), 0);
}

TEST(ExactSquareSum, IsNotFiniteWhereATermIsNot) {
  for (float const bad : {std::numeric_limits<float>::infinity(), std::nanf("")})
    EXPECT_FALSE(std::isfinite(exact({1, bad, 2})));
  EXPECT_TRUE(std::isfinite(exact({std::numeric_limits<float>::max()})));
  ExactSquareSum overflow;
  overflow.add(std::vector{1e200});
  EXPECT_FALSE(std::isfinite(overflow.value()));
}

}  // namespace
}  // namespace stratagem
