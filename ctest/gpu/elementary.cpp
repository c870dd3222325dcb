#include "gpu/layers/elementary.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace stratagem::gpu {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(Elementary, ExponentialIsThatOfDoubles) {
  for (float x = -87; x <= 88; x += 0.01F) {
    double const exact = std::exp(static_cast<double>(x));
    EXPECT_LT(std::abs(exponential(x) - exact), 2.5e-7 * exact) << x;
  }
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(1000), exponential(88));
  EXPECT_TRUE(std::isnan(exponential(nan)));
}

TEST(Elementary, LogarithmIsThatOfDoubles) {
  for (float x = 1e-30F; x < 1e30F; x *= 1.01F) {
    double const exact = std::log(static_cast<double>(x));
    EXPECT_LT(std::abs(logarithm(x) - exact), 2.5e-7 * std::max(1.0, std::abs(exact))) << x;
  }
  EXPECT_EQ(logarithm(1), 0);
  EXPECT_TRUE(std::isnan(logarithm(nan)));
}

}  // namespace
}  // namespace stratagem::gpu
