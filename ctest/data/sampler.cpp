#include "data/sampler.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(Sampler, AnEpochVisitsEveryImageOnce) {
  auto order = epoch_order(1, 0, 1000);
  std::vector<std::int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_NE(order, all);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, all);
}

TEST(Sampler, OrderDependsOnSeedAndEpochAlone) {
  auto const order = epoch_order(1, 0, 1000);
  EXPECT_EQ(order, epoch_order(1, 0, 1000));
  EXPECT_NE(order, epoch_order(1, 1, 1000));
  EXPECT_NE(order, epoch_order(2, 0, 1000));
}

TEST(Sampler, EveryPlaceIsEquallyLikely) {
  // Where image 0 of 10 lands in 20,000 epochs: 2,000 times in each place, give or take 5 sigma.
  std::vector<int> landed(10);
  for (std::int64_t epoch = 0; epoch < 20000; ++epoch) {
    auto const order = epoch_order(7, epoch, 10);
    ++landed[static_cast<std::size_t>(std::find(order.begin(), order.end(), 0) - order.begin())];
  }
  for (int count : landed) EXPECT_NEAR(count, 2000, 5 * 43);
}

TEST(Sampler, TheLastShortBatchIsDropped) {
  EXPECT_EQ(steps_per_epoch(128, 64), 2);
  EXPECT_EQ(steps_per_epoch(127, 64), 1);
  EXPECT_EQ(steps_per_epoch(63, 64), 0);
  EXPECT_THROW(steps_per_epoch(10, 0), std::logic_error);
}

TEST(Sampler, RanksShareEveryGlobalBatch) {
  for (int ranks : {1, 2, 3, 4, 12}) {
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      auto const slots = RankSlice{rank, ranks}.of_batch(24);
      EXPECT_EQ(slots.begin, next);
      EXPECT_EQ(slots.size(), 24 / ranks);
      next = slots.end;
    }
    EXPECT_EQ(next, 24);
  }
  EXPECT_THROW((RankSlice{0, 5}.of_batch(24)), std::logic_error);
  EXPECT_THROW((RankSlice{2, 2}.of_batch(24)), std::logic_error);
}

TEST(Sampler, EvaluationCoversEveryImageOnce) {
  for (std::int64_t images : {1, 7, 10000})
    for (int ranks : {1, 2, 3, 7, 64}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        auto const part = RankSlice{rank, ranks}.of_evaluation(images);
        EXPECT_EQ(part.begin, next);
        EXPECT_GE(part.size(), images / ranks);
        EXPECT_LE(part.size(), images / ranks + 1);
        next = part.end;
      }
      EXPECT_EQ(next, images);
    }
}

}  // namespace
}  // namespace stratagem
