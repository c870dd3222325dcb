#include "base/console/progress_line.hpp"

#include <gtest/gtest.h>

namespace stratagem {
namespace {

Progress sample() {
  return {.done_steps = 39,
          .total_steps = 750,
          .epoch = 1,
          .epochs = 6,
          .loss = 2.25,
          .per_s = 1119,
          .left_s = 41};
}

TEST(ProgressLine, TheBarIsWholeWhereThereIsRoom) {
  auto const whole =
      "[=                       ] epoch 1/6  step 39/750  loss 2.2500  1,119 images/s  left 41 s";
  EXPECT_EQ(progress_bar(sample(), 0), whole);
  EXPECT_EQ(progress_bar(sample(), 120), whole);
}

TEST(ProgressLine, WhatMattersLeastGoesFirst) {
  EXPECT_EQ(progress_bar(sample(), 79),
            "[          ] epoch 1/6  step 39/750  loss 2.2500  1,119 images/s  left 41 s");
  EXPECT_EQ(progress_bar(sample(), 70),
            "epoch 1/6  step 39/750  loss 2.2500  1,119 images/s  left 41 s");
  EXPECT_EQ(progress_bar(sample(), 60), "epoch 1/6  step 39/750  loss 2.2500  left 41 s");
  EXPECT_EQ(progress_bar(sample(), 40), "epoch 1/6  step 39/750  left 41 s");
  EXPECT_EQ(progress_bar(sample(), 30), "step 39/750  left 41 s");
  EXPECT_EQ(progress_bar(sample(), 12), "step 39/750");
}

TEST(ProgressLine, NoWidthIsExceeded) {
  auto progress = sample();
  progress.total_steps = progress.done_steps = 1'234'567;
  for (int columns = 1; columns < 150; ++columns)
    EXPECT_LE(progress_bar(progress, columns).size(), static_cast<std::size_t>(columns));
}

TEST(ProgressLine, ALineForFilesHasNoBar) {
  EXPECT_EQ(progress_line(sample()),
            "epoch 1/6  step 39/750  loss 2.2500  1,119 images/s  left 41 s");
}

}  // namespace
}  // namespace stratagem
