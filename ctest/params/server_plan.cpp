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

TEST(ServerPlan, RefusesMoreServersThanChunks) {
  auto const layout = layout_of(2 * page);
  EXPECT_NE(refusal([&] {
              static_cast<void>(make_server_plan(layout, 3, 4096, float_bytes));
            }).find("2 chunks"),
            std::string::npos);
}

TEST(ServerPlan, CutsFromTheEndOnPages) {
  auto const plan = make_server_plan(layout_of(5 * page + 64), 1, 8000, float_bytes);
  ASSERT_EQ(plan.chunks.size(), 3U);  // 8000 B are rounded up to two pages
  EXPECT_EQ(plan.chunks[0].range, (FlatRange{4 * page, 5 * page + 64}));
  EXPECT_EQ(plan.chunks[1].range, (FlatRange{2 * page, 4 * page}));
  EXPECT_EQ(plan.chunks[2].range, (FlatRange{0, 2 * page}));
  EXPECT_EQ(plan.chunks[1].offset, 2 * page);
  EXPECT_EQ(plan.shards, (std::vector<std::int64_t>{6 * page}));
  EXPECT_EQ(plan.loads, (std::vector<std::int64_t>{5 * page + 64}));
}

TEST(ServerPlan, EveryElementHasOneHomeUpTo1024Servers) {
  CounterRandom const random(1, "sizes");
  for (std::uint32_t round = 0; round < 20; ++round) {
    int const servers = 1 + static_cast<int>(random.word(3 * round + 1) % 1024);
    auto const layout = layout_of((servers + random.word(3 * round + 2) % 3000) * page - 32);
    auto const plan = make_server_plan(layout, servers, 4096, float_bytes);
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
  auto const plan = make_server_plan(layout_of(3 * page), 2, 4096, float_bytes);
  EXPECT_DOUBLE_EQ(plan.imbalance(), 2 / 1.5);
}

TEST(ServerPlan, HashTellsPlansApart) {
  auto of = [](std::int64_t pages, int servers, std::int64_t chunk_bytes) {
    return make_server_plan(layout_of(pages * page), servers, chunk_bytes, float_bytes).hash();
  };
  auto const base = of(40, 2, 4096);
  EXPECT_EQ(base, of(40, 2, 4096));
  EXPECT_NE(base, of(40, 3, 4096));
  EXPECT_NE(base, of(40, 2, 8192));
  EXPECT_NE(base, of(41, 2, 4096));
}

}  // namespace
}  // namespace stratagem
