#include "strategy/placement.hpp"

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(Placement, EveryRankIsAWorkerWhereNobodyServes) {
  Placement const placement(4);
  EXPECT_EQ(placement.ranks(), 4);
  EXPECT_EQ(placement.workers(), 4);
  EXPECT_EQ(placement.servers(), 0);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(placement.seat_of(rank), (Seat{.worker = rank}));
    EXPECT_EQ(placement.rank_of_worker(rank), rank);
    EXPECT_FALSE(placement.serves(rank));
  }
}

TEST(Placement, WorkersAndServersAreNumberedInRankOrder) {
  Placement const placement(5, {0, 3});
  EXPECT_EQ(placement.worker_ranks(), (std::vector{1, 2, 4}));
  EXPECT_EQ(placement.server_ranks(), (std::vector{0, 3}));
  EXPECT_EQ(placement.seat_of(4), (Seat{.worker = 2}));
  EXPECT_EQ(placement.seat_of(3), (Seat{.server = 1}));
  EXPECT_EQ(placement.rank_of_worker(1), 2);
  EXPECT_EQ(placement.rank_of_server(1), 3);
}

TEST(Placement, SlicesOfTheBatchAreOfWorkersAlone) {
  Placement const placement(3, {1});
  EXPECT_FALSE(placement.slice_of(1));
  auto const last = placement.slice_of(2);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->rank, 1);
  EXPECT_EQ(last->ranks, 2);
}

TEST(Placement, HashTellsSeatsApart) {
  EXPECT_EQ(Placement(4, {3}).hash(), Placement(4, {3}).hash());
  EXPECT_NE(Placement(4, {3}).hash(), Placement(4, {0}).hash());
  EXPECT_NE(Placement(4, {3}).hash(), Placement(5, {3}).hash());
  EXPECT_NE(Placement(4, {3}).hash(), Placement(4).hash());
}

}  // namespace
}  // namespace stratagem
