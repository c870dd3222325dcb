#include "optim/loss_scaler.hpp"

#include <gtest/gtest.h>

namespace stratagem {
namespace {

bool good_steps(LossScaler& scaler, std::int64_t count) {
  bool fine = true;
  for (std::int64_t i = 0; i < count; ++i) fine = scaler.update(false) && fine;
  return fine;
}

TEST(LossScaler, HalvesAtAnOverflowAndGrowsBack) {
  LossScaler scaler;
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_TRUE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 32768);
  EXPECT_TRUE(good_steps(scaler, LossScaler::growth_interval - 1));
  EXPECT_EQ(scaler.scale(), 32768);
  EXPECT_TRUE(good_steps(scaler, 1));
  EXPECT_EQ(scaler.scale(), 65536);
}

TEST(LossScaler, AnOverflowStartsTheCountAnew) {
  LossScaler scaler;
  EXPECT_TRUE(good_steps(scaler, LossScaler::growth_interval - 1));
  EXPECT_TRUE(scaler.update(true));
  EXPECT_TRUE(good_steps(scaler, LossScaler::growth_interval - 1));
  EXPECT_EQ(scaler.scale(), 32768);
}

TEST(LossScaler, StaysWithinItsBounds) {
  LossScaler scaler;
  EXPECT_TRUE(good_steps(scaler, 20 * LossScaler::growth_interval));
  EXPECT_EQ(scaler.scale(), LossScaler::largest_scale);
  int halvings = 0;
  while (scaler.update(true)) ++halvings;
  EXPECT_EQ(halvings, 24);
  EXPECT_EQ(scaler.scale(), LossScaler::least_scale);
  EXPECT_FALSE(scaler.update(true)) << "not for want of range";
  EXPECT_TRUE(scaler.update(false));
}

}  // namespace
}  // namespace stratagem
