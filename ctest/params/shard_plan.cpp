#include "params/shard_plan.hpp"

#include <set>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace stratagem {
namespace {

/// Blocks of up to four parameters of 1 to 2,000 elements, some of them kept in fp32, some blocks
/// without any: a function of `seed`.
ParameterLayout random_layout(int blocks, std::uint64_t seed) {
  CounterRandom const random(seed, "blocks");
  std::uint64_t drawn = 0;
  auto draw = [&](std::uint64_t below) {
    return static_cast<std::int64_t>(random.word(drawn++) % below);
  };
  std::vector<std::vector<ParameterSpec>> specs(static_cast<std::size_t>(blocks));
  for (auto& block : specs)
    for (auto i = draw(5); i > 0; --i)
      block.push_back({.name = "p" + std::to_string(drawn),
                       .shape = {1 + draw(2000)},
                       .initialiser = Initialiser::constant(0),
                       .keep_fp32 = draw(2) == 1});
  return {specs, false};
}

/// Everything that holds for every plan.
void expect_sound(ShardPlan const& plan, ParameterLayout const& layout, bool mixed) {
  std::set<std::size_t> seen;
  int next_block = 0;
  std::int64_t owned = 0;
  for (auto const& unit : plan.units) {
    EXPECT_EQ(unit.first_block, next_block) << "every block is in one unit, in order";
    next_block = unit.last_block + 1;
    EXPECT_LE(unit.chunks.size(), mixed ? 2U : 1U);
    for (auto const& chunk : unit.chunks) {
      EXPECT_EQ(chunk.owned, owned);
      owned += chunk.shard;
      EXPECT_EQ(chunk.shard % ParameterLayout::alignment, 0);
      EXPECT_GE(chunk.shard * plan.ranks, chunk.used) << "the shards hold the chunk";
      EXPECT_LT((chunk.shard - ParameterLayout::alignment) * plan.ranks, chunk.used)
          << "and are as small as alignment allows";
      std::int64_t end = 0;
      for (auto const& place : chunk.places) {
        auto const& entry = layout.entries()[place.entry];
        EXPECT_TRUE(seen.insert(place.entry).second) << "a parameter has one place";
        EXPECT_GE(place.offset, end) << "parameters do not overlap";
        EXPECT_EQ(place.offset % ParameterLayout::alignment, 0);
        EXPECT_TRUE(unit.first_block <= entry.block && entry.block <= unit.last_block);
        if (mixed) {
          EXPECT_NE(entry.spec.keep_fp32, chunk.low_precision);
        }
        end = place.offset + entry.spec.numel();
      }
      std::int64_t filled = 0, free = 0;
      for (auto const& place : chunk.places) filled += layout.entries()[place.entry].spec.numel();
      for (auto const& gap : gaps(chunk, layout, plan.ranks)) free += gap.size();
      EXPECT_EQ(filled + free, chunk.shard * plan.ranks) << "gaps are what no parameter fills";
    }
  }
  EXPECT_EQ(next_block, layout.blocks());
  EXPECT_EQ(plan.owned, owned);
  EXPECT_EQ(seen.size(), layout.entries().size()) << "every parameter has a place";
}

TEST(ShardPlan, IsSoundForEveryModelAndNumberOfRanks) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const layout = random_layout(1 + static_cast<int>(seed % 7), seed);
    for (int const ranks : {1, 2, 3, 4, 7, 64, 1024})
      for (std::int64_t const unit : {1, 1000, 100'000})
        for (bool const mixed : {false, true})
          expect_sound(make_shard_plan(layout, ranks, unit, mixed), layout, mixed);
  }
}

TEST(ShardPlan, UnitsHoldWholeBlocksUntilTheyAreLargeEnough) {
  std::vector<std::vector<ParameterSpec>> blocks;
  for (int i = 0; auto const size : {32, 64, 0, 640, 32, 32, 0})
    blocks.push_back(size == 0
                         ? std::vector<ParameterSpec>{}
                         : std::vector<ParameterSpec>{
                               {"p" + std::to_string(i++), {size}, Initialiser::constant(0)}});
  ParameterLayout const layout(blocks, false);
  auto const plan = make_shard_plan(layout, 2, 96, false);
  std::vector<std::pair<int, int>> units;
  for (auto const& unit : plan.units) units.emplace_back(unit.first_block, unit.last_block);
  EXPECT_EQ(units, (std::vector<std::pair<int, int>>{{0, 2}, {3, 3}, {4, 6}}));
  EXPECT_EQ(plan.unit_of(2), 0);
  EXPECT_EQ(plan.unit_of(3), 1);
  EXPECT_EQ(plan.unit_of(6), 2);
}

TEST(ShardPlan, TheHashTellsPlansApart) {
  auto const layout = random_layout(6, 1);
  auto const plan = make_shard_plan(layout, 3, 1000, false);
  EXPECT_EQ(plan.hash(), make_shard_plan(layout, 3, 1000, false).hash());
  EXPECT_NE(plan.hash(), make_shard_plan(layout, 4, 1000, false).hash());
  EXPECT_NE(plan.hash(), make_shard_plan(layout, 3, 100'000, false).hash());
  EXPECT_NE(plan.hash(), make_shard_plan(layout, 3, 1000, true).hash());
  EXPECT_NE(plan.hash(), make_shard_plan(random_layout(6, 2), 3, 1000, false).hash());
}

TEST(ShardPlan, ABlockThatLendsEndsItsUnit) {
  auto const zero = Initialiser::constant(0);
  std::vector<std::vector<ParameterSpec>> const specs{
      {{"tokens", {7, 3}, zero}}, {{"a", {40}, zero}}, {{"b", {40}, zero}}, {{"c", {3}, zero}}};
  ParameterLayout const layout(specs, false, {{}, {}, {}, {"tokens"}});
  auto const plan = make_shard_plan(layout, 2, 1 << 20, false);
  ASSERT_EQ(plan.units.size(), 2U);
  EXPECT_EQ(plan.units[0].last_block, 0);
  EXPECT_EQ(plan.units[1].last_block, 3);
  expect_sound(plan, layout, false);
}

}  // namespace
}  // namespace stratagem
