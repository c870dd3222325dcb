#include "compress/sparse_code.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace stratagem {
namespace {

using Places = std::vector<std::uint32_t>;

constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
constexpr auto infinity = std::numeric_limits<float>::infinity();
constexpr auto smallest = std::numeric_limits<float>::denorm_min();

Places largest(std::vector<float> const& values, std::size_t k) {
  Places places(k);
  sparse_code::select_largest(values, places);
  return places;
}

/// As the definition has it: sorted by magnitude, and equal ones by place.
Places sorted_largest(std::vector<float> const& values, std::size_t k) {
  Places all(values.size());
  std::iota(all.begin(), all.end(), 0);
  auto const magnitude = [&](std::uint32_t i) {
    return std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffff;
  };
  std::ranges::stable_sort(all, std::greater(), magnitude);
  all.resize(k);
  std::ranges::sort(all);
  return all;
}

std::vector<float> some_values(std::size_t numel, std::uint64_t seed) {
  CounterRandom const random(seed, "values");
  std::vector<float> values;
  for (std::size_t i = 0; values.size() < numel; ++i)
    for (auto const value : to_normal(random.block(i))) values.push_back(static_cast<float>(value));
  values.resize(numel);
  return values;
}

std::vector<std::byte> message(Places const& places, std::vector<float> const& numbers) {
  std::vector<std::byte> wire(places.size() * sparse_code::element_bytes);
  std::memcpy(wire.data(), places.data(), 4 * places.size());
  std::memcpy(wire.data() + 4 * places.size(), numbers.data(), 4 * places.size());
  return wire;
}

TEST(SparseCode, CountsAreRoundedUp) {
  EXPECT_EQ(sparse_code::count_of(0.01, 100), 1);
  EXPECT_EQ(sparse_code::count_of(0.01, 101), 2);
  EXPECT_EQ(sparse_code::count_of(0.01, 700), 7);  // in fp64 the product is more than 7
  EXPECT_EQ(sparse_code::count_of(1e-9, 5), 1);
  EXPECT_EQ(sparse_code::count_of(1, 5), 5);
  EXPECT_EQ(sparse_code::count_of(0.5, 1), 1);
}

TEST(SparseCode, TakesTheLargestMagnitudes) {
  EXPECT_EQ(largest({1, -3, 2, 0, 2.5}, 2), (Places{1, 4}));
  EXPECT_EQ(largest({1, -3, 2, 0, 2.5}, 5), (Places{0, 1, 2, 3, 4}));
  EXPECT_EQ(largest({7}, 1), Places{0});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto values = some_values(1 + 97 * seed, seed);
    for (auto& value : values)
      if (seed % 3 == 0) value = std::round(2 * value);  // many are equal
    for (auto const k : {std::size_t{1}, 1 + values.size() / 10, values.size()})
      EXPECT_EQ(largest(values, k), sorted_largest(values, k)) << seed << ", " << k;
  }
}

TEST(SparseCode, OfEqualMagnitudesTheFirst) {
  EXPECT_EQ(largest({2, -2, 1, 2, -2}, 3), (Places{0, 1, 3}));
  EXPECT_EQ(largest({0, -0.0F, 0, -0.0F}, 2), (Places{0, 1}));
  EXPECT_EQ(largest({0, 0, smallest, 0}, 2), (Places{0, 2}));
}

TEST(SparseCode, WhatIsNotFiniteIsTakenFirst) {
  EXPECT_EQ(largest({1e38F, -infinity, 3, nan, infinity}, 1), Places{3});
  EXPECT_EQ(largest({1e38F, -infinity, 3, -nan, infinity}, 2), (Places{1, 3}));
  EXPECT_EQ(largest({1e38F, -infinity, 3, nan, infinity}, 4), (Places{0, 1, 3, 4}));
}

TEST(SparseCode, DrawsOneOfEachPart) {
  CounterRandom const random(5, "places");
  for (std::int64_t const numel : {1, 7, 100, 1003})
    for (std::int64_t const k : {std::int64_t{1}, std::min<std::int64_t>(7, numel), numel}) {
      Places places(static_cast<std::size_t>(k)), other(places);
      sparse_code::draw_places(random, 1, numel, places);
      sparse_code::draw_places(random, 2, numel, other);
      std::int64_t begin = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        auto const end = begin + numel / k + (i < numel % k ? 1 : 0);
        EXPECT_TRUE(begin <= places[i] && places[i] < end) << numel << ", " << k << ", " << i;
        begin = end;
      }
      EXPECT_EQ(begin, numel);
      EXPECT_TRUE(numel < 1003 || k != 7 || places != other);
    }
}

/// Over many draws, each of a part's elements comes as often as the others.
TEST(SparseCode, DrawsAllElementsAlike) {
  constexpr int draws = 20'000, numel = 10;
  CounterRandom const random(5, "places");
  std::vector<int> counts(numel);
  for (int i = 0; i < draws; ++i) {
    Places places(2);
    sparse_code::draw_places(random, static_cast<std::uint64_t>(i), numel, places);
    for (auto const place : places) ++counts[place];
  }
  for (int const count : counts) EXPECT_NEAR(count, draws / 5, 0.05 * draws / 5);
}

TEST(SparseCode, AddsWhatWasWritten) {
  auto const values = some_values(50, 3);
  Places const places{0, 7, 48, 49};
  std::vector<std::byte> wire(places.size() * sparse_code::element_bytes);
  sparse_code::write(places, values, wire);
  std::vector<float> sums(50, 1), expected(sums);
  sparse_code::add(wire, sums);
  for (auto const place : places) expected[place] += values[place];
  EXPECT_EQ(sums, expected);
}

TEST(SparseCode, RefusesPlacesThatCannotBe) {
  for (auto const& places : {Places{0, 5}, Places{2, 1}, Places{3, 3}, Places{1, 0xffffffff}}) {
    std::vector<float> sums(5);
    try {
      sparse_code::add(message(places, {1, 2}), sums);
      FAIL() << places[0] << " and " << places[1];
    } catch (AgreedError const& error) {
      EXPECT_EQ(error.code(), ExitCode::mismatch);
    }
    EXPECT_EQ(sums, std::vector<float>(5)) << "nothing is written before all is known to be right";
  }
  std::vector<float> sums(5);
  sparse_code::add(message({0, 4}, {1, 2}), sums);
  EXPECT_EQ(sums, (std::vector<float>{1, 0, 0, 0, 2}));
}

TEST(SparseCode, MomentumIsThatOfAllGradients) {
  std::vector<float> velocity{1, 2, -4}, residual{10, 20, 30};
  sparse_code::accumulate(std::vector<float>{1, 1, 1}, 0.5F, velocity, residual);
  EXPECT_EQ(velocity, (std::vector<float>{1.5F, 2, -1}));
  EXPECT_EQ(residual, (std::vector<float>{11.5F, 22, 29}));
  sparse_code::clear(Places{0, 2}, residual);
  EXPECT_EQ(residual, (std::vector<float>{0, 22, 0}));
}

}  // namespace
}  // namespace stratagem
