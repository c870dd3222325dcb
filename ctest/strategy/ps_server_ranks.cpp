#include <gtest/gtest.h>

#include "base/error.hpp"
#include "strategy/ps/server_ranks.hpp"

namespace stratagem {
namespace {

Placement placed(int ranks, int servers, ServerPlacement rule,
                 std::vector<int> const& listed = {}) {
  return place_servers({.servers = servers, .server_ranks = rule, .listed_ranks = listed}, ranks);
}

std::string refusal(int ranks, int servers, ServerPlacement rule,
                    std::vector<int> const& listed = {}) {
  try {
    placed(ranks, servers, rule, listed);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(PsServerRanks, ServersAreTheLastRanks) {
  EXPECT_EQ(placed(5, 2, ServerPlacement::last).server_ranks(), (std::vector{3, 4}));
}

TEST(PsServerRanks, ServersAreSpreadOneToAGroup) {
  auto const placement = placed(8, 2, ServerPlacement::spread);
  EXPECT_EQ(placement.server_ranks(), (std::vector{3, 7}));
  EXPECT_EQ(placement.worker_ranks(), (std::vector{0, 1, 2, 4, 5, 6}));
}

TEST(PsServerRanks, ServersCanBeAnyRanks) {
  EXPECT_EQ(placed(4, 2, ServerPlacement::first).server_ranks(), (std::vector{0, 1}));
  EXPECT_EQ(placed(5, 2, ServerPlacement::listed, {3, 0}).server_ranks(), (std::vector{0, 3}));
}

TEST(PsServerRanks, EveryRankHasOneSeatUpTo1024Ranks) {
  for (int const ranks : {2, 3, 7, 64, 1000, 1024})
    for (int const servers : {1, 2, 3, ranks / 2, ranks - 1})
      for (auto const rule :
           {ServerPlacement::last, ServerPlacement::first, ServerPlacement::spread}) {
        if (servers < 1 || servers >= ranks) continue;
        auto const placement = placed(ranks, servers, rule);
        ASSERT_EQ(placement.servers(), servers);
        ASSERT_EQ(placement.workers(), ranks - servers);
        ASSERT_EQ(placement.rank_of_worker(0), rule == ServerPlacement::first ? servers : 0);
        for (int rank = 0; rank < ranks; ++rank) {
          auto const seat = placement.seat_of(rank);
          ASSERT_NE(seat.worker < 0, seat.server < 0) << rank;
        }
      }
}

TEST(PsServerRanks, RefusesWhatCannotBe) {
  EXPECT_NE(refusal(4, 0, ServerPlacement::last).find("servers: 0"), std::string::npos);
  EXPECT_NE(refusal(2, 2, ServerPlacement::last).find("left for workers"), std::string::npos);
  for (auto const& listed : {std::vector{1, 1}, {0, 4}, {2}})
    EXPECT_NE(refusal(4, 2, ServerPlacement::listed, listed).find("strategy.server_ranks names"),
              std::string::npos);
}

}  // namespace
}  // namespace stratagem
