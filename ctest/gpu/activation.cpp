#include "gpu/layers/activation.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(Activation, SlopesAreThoseOfDifferences) {
  for (float x = -6; x < 6; x += 0.37F) {
    double const apart = 1e-2;
    double const rise =
        activated(Activation::silu, x + 0.01F) - activated(Activation::silu, x - 0.01F);
    EXPECT_NEAR(gradient_before(Activation::silu, x, 3), 3 * rise / (2 * apart), 2e-3) << x;
    EXPECT_EQ(gradient_before(Activation::relu, x, 3), x > 0 ? 3 : 0);
  }
}

}  // namespace
}  // namespace stratagem
