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

TEST(Sampler, RunsAreVisitedOnceAndNearEachOther) {
  Runs runs{.window = 100};
  for (std::int64_t begin = 0; begin < 1000; begin += 50) runs.parts.push_back({begin, begin + 50});
  auto order = epoch_order(1, 0, 1000, runs);
  EXPECT_EQ(order, epoch_order(1, 0, 1000, runs));
  EXPECT_NE(order, epoch_order(1, 1, 1000, runs));
  EXPECT_NE(order, epoch_order(2, 0, 1000, runs));
  bool in_file_order = true, mixed = false;
  for (std::size_t window = 0; window < 10; ++window) {
    std::vector<std::int64_t> in_window;
    for (std::size_t i = 0; i < 100; ++i) in_window.push_back(order[100 * window + i] / 50);
    mixed = mixed || !std::is_sorted(in_window.begin(), in_window.end());
    in_file_order = in_file_order && in_window.front() == static_cast<std::int64_t>(2 * window);
    std::sort(in_window.begin(), in_window.end());
    in_window.erase(std::unique(in_window.begin(), in_window.end()), in_window.end());
    EXPECT_EQ(in_window.size(), 2u) << "a window holds two whole runs";
  }
  EXPECT_FALSE(in_file_order);
  EXPECT_TRUE(mixed);
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<std::int64_t>(i));
}

TEST(Sampler, WithoutRunsEveryImageStandsAlone) {
  EXPECT_EQ(epoch_order(3, 2, 500, Runs()), epoch_order(3, 2, 500));
}

TEST(Sampler, RunsMustHoldEveryImage) {
  EXPECT_THROW(epoch_order(1, 0, 10, {.parts = {{0, 5}}}), std::logic_error);
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
