#include "params/server_plan.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t float_bytes = 4;
constexpr std::int64_t page = 4096 / float_bytes;  // elements

ParameterLayout layout_of(std::int64_t elements) {
  return {{{{"w", {elements}, Initialiser::constant(0)}}}, false};
}

std::string refusal(auto const& act) {
  try {
    act();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(ServerPlan, ServersAreTheLastRanks) {
  auto const roles = assign_roles(5, 2, ServerPlacement::last);
  EXPECT_EQ(roles.servers, (std::vector{3, 4}));
  EXPECT_EQ(roles.workers, (std::vector{0, 1, 2}));
  EXPECT_EQ(roles.worker_of(2), 2);
  EXPECT_EQ(roles.worker_of(3), -1);
  EXPECT_EQ(roles.server_of(4), 1);
  EXPECT_EQ(roles.server_of(0), -1);
}

TEST(ServerPlan, ServersAreSpreadOneToAGroup) {
  auto const roles = assign_roles(8, 2, ServerPlacement::spread);
  EXPECT_EQ(roles.servers, (std::vector{3, 7}));
  EXPECT_EQ(roles.workers, (std::vector{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(roles.worker_of(4), 3);
}

TEST(ServerPlan, ServersCanBeAnyRanks) {
  EXPECT_EQ(assign_roles(4, 2, ServerPlacement::first).workers, (std::vector{2, 3}));
  auto const roles = assign_roles(5, 2, ServerPlacement::listed, {3, 0});
  EXPECT_EQ(roles.servers, (std::vector{0, 3}));
  EXPECT_EQ(roles.workers, (std::vector{1, 2, 4}));
}

TEST(ServerPlan, EveryRankHasOneRoleUpTo1024Ranks) {
  for (int const ranks : {2, 3, 7, 64, 1000, 1024})
    for (int const servers : {1, 2, 3, ranks / 2, ranks - 1})
      for (auto const placement :
           {ServerPlacement::last, ServerPlacement::first, ServerPlacement::spread}) {
        if (servers < 1 || servers >= ranks) continue;
        auto const roles = assign_roles(ranks, servers, placement);
        ASSERT_EQ(roles.servers.size(), static_cast<std::size_t>(servers));
        ASSERT_EQ(roles.workers.size(), static_cast<std::size_t>(ranks - servers));
        ASSERT_EQ(roles.workers.front(), placement == ServerPlacement::first ? servers : 0);
        for (int rank = 0; rank < ranks; ++rank)
          ASSERT_NE(roles.worker_of(rank) < 0, roles.server_of(rank) < 0) << rank;
      }
}

TEST(ServerPlan, RefusesRolesThatCannotBe) {
  EXPECT_NE(refusal([] { assign_roles(4, 0, ServerPlacement::last); }).find("servers: 0"),
            std::string::npos);
  EXPECT_NE(refusal([] { assign_roles(2, 2, ServerPlacement::last); }).find("left for workers"),
            std::string::npos);
  for (auto const& listed : {std::vector{1, 1}, {0, 4}, {2}})
    EXPECT_NE(refusal([&] {
                assign_roles(4, 2, ServerPlacement::listed, listed);
              }).find("strategy.server_ranks names"),
              std::string::npos);
}

TEST(ServerPlan, RefusesMoreServersThanChunks) {
  auto const layout = layout_of(2 * page);
  auto const roles = assign_roles(4, 3, ServerPlacement::last);
  EXPECT_NE(refusal([&] {
              static_cast<void>(make_server_plan(layout, roles, 4096, float_bytes));
            }).find("2 chunks"),
            std::string::npos);
}

TEST(ServerPlan, CutsFromTheEndOnPages) {
  auto const plan = make_server_plan(layout_of(5 * page + 64),
                                     assign_roles(2, 1, ServerPlacement::last), 8000, float_bytes);
  ASSERT_EQ(plan.chunks.size(), 3U);  // 8000 B are rounded up to two pages
  EXPECT_EQ(plan.chunks[0].range, (FlatRange{4 * page, 5 * page + 64}));
  EXPECT_EQ(plan.chunks[1].range, (FlatRange{2 * page, 4 * page}));
  EXPECT_EQ(plan.chunks[2].range, (FlatRange{0, 2 * page}));
  EXPECT_EQ(plan.chunks[1].offset, 2 * page);
  EXPECT_EQ(plan.shards, (std::vector<std::int64_t>{6 * page}));
  EXPECT_EQ(plan.loads, (std::vector<std::int64_t>{5 * page + 64}));
}

TEST(ServerPlan, EveryElementHasOneHomeUpTo1024Ranks) {
  CounterRandom const random(1, "sizes");
  for (std::uint32_t round = 0; round < 20; ++round) {
    int const ranks = 2 + static_cast<int>(random.word(3 * round) % 1023);
    int const servers = 1 + static_cast<int>(random.word(3 * round + 1) % (ranks - 1));
    auto const layout = layout_of((servers + random.word(3 * round + 2) % 3000) * page - 32);
    auto const plan = make_server_plan(
        layout, assign_roles(ranks, servers, ServerPlacement::spread), 4096, float_bytes);
    auto end = layout.size();
    for (auto const& chunk : plan.chunks) {
      ASSERT_EQ(chunk.range.end, end);
      ASSERT_EQ(chunk.range.begin % page, 0);
      end = chunk.range.begin;
    }
    ASSERT_EQ(end, 0);
    for (int server = 0; server < servers; ++server) {
      std::int64_t offset = 0, load = 0;
      for (auto const& chunk : plan.chunks_of(server)) {
        ASSERT_EQ(chunk.offset, offset);
        offset += (chunk.range.size() + page - 1) / page * page;
        load += chunk.range.size();
      }
      ASSERT_EQ(plan.shards[static_cast<std::size_t>(server)], offset);
      ASSERT_EQ(plan.loads[static_cast<std::size_t>(server)], load);
      ASSERT_GT(load, 0);
    }
    // Equal chunks, but for one: no server has two more than another.
    auto const [least, most] = std::ranges::minmax(plan.loads);
    ASSERT_LE(most - least, page);
  }
}

TEST(ServerPlan, ImbalanceIsLargestOverMean) {
  auto const plan = make_server_plan(layout_of(3 * page), assign_roles(3, 2, ServerPlacement::last),
                                     4096, float_bytes);
  EXPECT_DOUBLE_EQ(plan.imbalance(), 2 / 1.5);
}

TEST(ServerPlan, HashTellsPlansApart) {
  auto of = [](int ranks, int servers, std::int64_t chunk_bytes, ServerPlacement placement) {
    return make_server_plan(layout_of(40 * page), assign_roles(ranks, servers, placement),
                            chunk_bytes, float_bytes)
        .hash();
  };
  auto const base = of(6, 2, 4096, ServerPlacement::last);
  EXPECT_EQ(base, of(6, 2, 4096, ServerPlacement::last));
  EXPECT_NE(base, of(6, 3, 4096, ServerPlacement::last));
  EXPECT_NE(base, of(7, 2, 4096, ServerPlacement::spread));
  EXPECT_NE(base, of(6, 2, 8192, ServerPlacement::last));
  EXPECT_NE(base, of(6, 2, 4096, ServerPlacement::spread));
}

}  // namespace
}  // namespace stratagem
