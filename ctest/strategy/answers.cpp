#include "strategy/fedavg/answers.hpp"

#include <set>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(Answers, EveryPlaceLivesOrIsLost) {
  for (int lost = 0; lost < 10; ++lost) {
    auto const answers = answers_of(10, lost, 1, 3);
    EXPECT_EQ(answers.lost.size(), static_cast<std::size_t>(lost));
    std::set<int> places(answers.living.begin(), answers.living.end());
    for (int const place : answers.living) EXPECT_TRUE(answers.lives(place));
    for (int const place : answers.lost) {
      EXPECT_FALSE(answers.lives(place));
      EXPECT_TRUE(places.insert(place).second);
    }
    EXPECT_EQ(places.size(), 10U);
    EXPECT_EQ(*places.begin(), 0);
    EXPECT_EQ(*places.rbegin(), 9);
  }
}

TEST(Answers, DependOnSeedAndRoundAlone) {
  auto const lost = answers_of(100, 30, 1, 3).lost;
  EXPECT_EQ(answers_of(100, 30, 1, 3).lost, lost);
  EXPECT_NE(answers_of(100, 30, 2, 3).lost, lost);
  EXPECT_NE(answers_of(100, 30, 1, 4).lost, lost);
}

/// Each in a quarter of the rounds: of 4,000, beyond 8 standard deviations once in 10^14 times.
TEST(Answers, AllAreLostEquallyOften) {
  std::vector<int> times(12);
  for (int round = 0; round < 4000; ++round)
    for (int const place : answers_of(12, 3, 5, round).lost)
      ++times[static_cast<std::size_t>(place)];
  for (int const count : times) EXPECT_NEAR(count, 1000, 220);
}

}  // namespace
}  // namespace stratagem
