#include "study/sweep.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(Sweep, TimeIsEstimatedFromTheNearestCells) {
  CellEntry const first{.group = "p-lenet", .part = "p", .model = "lenet"};
  CellEntry const same_model{.group = "p-lenet-w2", .part = "p", .model = "lenet"};
  CellEntry const other{.group = "q-vgg16", .part = "q", .model = "vgg16"};
  TimeEstimate estimate;
  EXPECT_TRUE(std::isnan(estimate.of(first)));
  estimate.add(first, 10);
  estimate.add(first, 20);
  EXPECT_EQ(estimate.of(first), 15);
  EXPECT_EQ(estimate.of(same_model), 15);
  EXPECT_EQ(estimate.of(other), 15);
  estimate.add(same_model, 60);
  EXPECT_EQ(estimate.of(first), 15) << "its own repetitions count alone";
  EXPECT_EQ(estimate.of({.group = "p-lenet-w4", .part = "p", .model = "lenet"}), 30);
  estimate.add(other, 210);
  EXPECT_EQ(estimate.of(same_model), 60);
  EXPECT_EQ(estimate.of({.group = "new", .part = "q", .model = "lenet"}), 75) << "the mean of all";
}

}  // namespace
}  // namespace stratagem
