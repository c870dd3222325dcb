#include "params/bucket_plan.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t float_bytes = 4;
constexpr std::int64_t unit = ParameterLayout::alignment;

/// A block of so many times `unit` elements each; 0 declares no parameter.
ParameterLayout layout_of(std::vector<std::int64_t> const& units) {
  std::vector<std::vector<ParameterSpec>> blocks;
  for (std::size_t i = 0; i < units.size(); ++i) {
    auto& block = blocks.emplace_back();
    if (units[i] > 0)
      block.push_back({"w" + std::to_string(i), {units[i] * unit}, Initialiser::constant(0)});
  }
  return {blocks, false};
}

/// Sizes from 0 to 99 units, a function of `seed`.
ParameterLayout random_layout(int blocks, std::uint64_t seed) {
  CounterRandom const random(seed, "sizes");
  std::vector<std::int64_t> units;
  for (int i = 0; i < blocks; ++i)
    units.push_back(random.word(static_cast<std::uint64_t>(i)) % 100);
  return layout_of(units);
}

std::vector<std::int64_t> units_of(BucketPlan const& plan) {
  std::vector<std::int64_t> units;
  for (auto const& bucket : plan.buckets) units.push_back(bucket.range.size() / unit);
  return units;
}

BucketPlan plan_in_units(ParameterLayout const& layout, std::int64_t bucket, std::int64_t last) {
  return make_bucket_plan(layout, bucket * unit * float_bytes, float_bytes,
                          last * unit * float_bytes);
}

/// From the end of the flat space to its start, without gap or overlap, in whole blocks.
void expect_covers_once(BucketPlan const& plan, ParameterLayout const& layout) {
  auto end = layout.size();
  int block = layout.blocks();
  for (auto const& bucket : plan.buckets) {
    ASSERT_GT(bucket.range.size(), 0);
    ASSERT_EQ(bucket.range.end, end);
    ASSERT_LE(bucket.first_block, bucket.last_block);
    ASSERT_LT(bucket.last_block, block);
    ASSERT_EQ(layout.range(bucket.first_block).begin, bucket.range.begin);
    ASSERT_EQ(layout.range(bucket.last_block).end, bucket.range.end);
    end = bucket.range.begin;
    block = bucket.first_block;
  }
  ASSERT_EQ(end, 0);
}

TEST(BucketPlan, CoversEveryBlockOnceUpToAThousandBlocks) {
  for (int const blocks : {1, 2, 7, 64, 1024})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      auto const layout = random_layout(blocks, seed);
      for (std::int64_t const bucket : {1, 50, 1000, 1'000'000})
        for (std::int64_t const last : {0, 1, 120}) {
          auto const plan = plan_in_units(layout, bucket, last);
          ASSERT_NO_FATAL_FAILURE(expect_covers_once(plan, layout))
              << blocks << " blocks, seed " << seed << ", " << bucket << ", " << last;
        }
    }
}

TEST(BucketPlan, ABucketClosesWhenItIsFull) {
  auto const layout = random_layout(200, 3);
  std::int64_t const wanted = 130;
  auto const plan = plan_in_units(layout, wanted, 0);
  // The last holds block 0 alone, and the one before it what was left.
  for (std::size_t i = 0; i + 2 < plan.buckets.size(); ++i) {
    auto const& bucket = plan.buckets[i];
    EXPECT_GE(bucket.range.size(), wanted * unit);
    auto const without_the_last_to_come = bucket.range.end - layout.range(bucket.first_block).end;
    EXPECT_LT(without_the_last_to_come, wanted * unit);
  }
}

TEST(BucketPlan, KeepsASmallLastBucketApart) {
  auto const layout = layout_of({2, 3, 4, 50, 50});
  EXPECT_EQ(units_of(plan_in_units(layout, 1000, 5)), (std::vector<std::int64_t>{104, 5}));
  EXPECT_EQ(units_of(plan_in_units(layout, 1000, 8)), (std::vector<std::int64_t>{104, 5}));
  EXPECT_EQ(units_of(plan_in_units(layout, 1000, 9)), (std::vector<std::int64_t>{100, 9}));
  // At least one block, however large.
  EXPECT_EQ(units_of(plan_in_units(layout, 1000, 1)), (std::vector<std::int64_t>{107, 2}));
  // Small buckets need no smaller one.
  EXPECT_EQ(units_of(plan_in_units(layout, 4, 9)), (std::vector<std::int64_t>{50, 50, 4, 5}));
}

TEST(BucketPlan, EmptyBlocksBelongToNone) {
  auto const plan = plan_in_units(layout_of({0, 2, 0, 3, 0}), 1, 0);
  ASSERT_EQ(plan.buckets.size(), 2U);
  EXPECT_EQ(plan.buckets[0].first_block, 3);
  EXPECT_EQ(plan.buckets[1].first_block, 1);
  EXPECT_TRUE(plan_in_units(layout_of({0, 0}), 1, 0).buckets.empty());
}

TEST(BucketPlan, ElementsCountByTheirSize) {
  auto const layout = layout_of({1, 10, 10, 10});
  auto const floats = make_bucket_plan(layout, 15 * unit * 4, 4, 0);
  auto const doubles = make_bucket_plan(layout, 15 * unit * 8, 8, 0);
  EXPECT_EQ(units_of(floats), units_of(doubles));
}

TEST(BucketPlan, HashTellsPlansApart) {
  auto const layout = random_layout(50, 1);
  EXPECT_EQ(plan_in_units(layout, 100, 1).hash(), plan_in_units(layout, 100, 1).hash());
  EXPECT_NE(plan_in_units(layout, 100, 1).hash(), plan_in_units(layout, 300, 1).hash());
}

}  // namespace
}  // namespace stratagem
