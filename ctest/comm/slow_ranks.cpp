#include "comm/watchdog/slow_ranks.hpp"

#include <gtest/gtest.h>

namespace stratagem {
namespace {

using namespace std::chrono_literals;

constexpr auto look = 100ms;

std::vector<Glance> glances_of(std::vector<std::int64_t> const& busy_ms) {
  std::vector<Glance> glances;
  for (auto const ms : busy_ms) glances.push_back({.busy_ns = ms * 1'000'000});
  return glances;
}

/// Looks for `time` at ranks that need `busy_ms` for a step; returns which are found.
std::vector<std::size_t> pass(SlowRanks& ranks, std::chrono::milliseconds time,
                              std::vector<std::int64_t> const& busy_ms) {
  std::vector<std::size_t> found;
  for (auto passed = 0ms; passed < time; passed += look)
    for (auto const slot : ranks.look(look, glances_of(busy_ms))) found.push_back(slot);
  return found;
}

TEST(SlowRanks, AreThoseThatTakeMuchLongerThanTheOthers) {
  auto const slow = [](std::vector<std::int64_t> const& busy_ms) {
    return slow_among(glances_of(busy_ms));
  };
  EXPECT_EQ(slow({10, 10, 20, 11}), std::vector<std::size_t>{2});
  EXPECT_EQ(slow({40, 10}), std::vector<std::size_t>{0});
  EXPECT_TRUE(slow({10, 14}).empty());
  EXPECT_TRUE(slow({1, 2}).empty());      // a millisecond is no matter
  EXPECT_TRUE(slow({0, 20, 0}).empty());  // servers have no steps to compare with
}

TEST(SlowRanks, AreFoundOnceWhenItLasts) {
  SlowRanks ranks(3);
  EXPECT_TRUE(pass(ranks, 14s, {10, 40, 11}).empty());
  EXPECT_EQ(pass(ranks, 2s, {10, 40, 11}), std::vector<std::size_t>{1});
  EXPECT_TRUE(pass(ranks, 60s, {10, 40, 11}).empty()) << "once";
}

TEST(SlowRanks, AShortRecoveryChangesNothing) {
  SlowRanks ranks(2);
  EXPECT_TRUE(pass(ranks, 10s, {10, 40}).empty());
  EXPECT_TRUE(pass(ranks, 500ms, {10, 10}).empty());
  EXPECT_EQ(pass(ranks, 5s, {10, 40}), std::vector<std::size_t>{1});
}

TEST(SlowRanks, AreNotNamedWhereAnotherJobSlowsNowThisAndThenThatOne) {
  SlowRanks ranks(2);
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_TRUE(pass(ranks, 8s, {40, 10}).empty());
    EXPECT_TRUE(pass(ranks, 8s, {10, 40}).empty());
  }
}

TEST(SlowRanks, BeginAgainWhenTheJobWasStopped) {
  SlowRanks ranks(2);
  EXPECT_TRUE(pass(ranks, 14s, {10, 40}).empty());
  EXPECT_TRUE(ranks.look(1h, glances_of({10, 40})).empty());
  EXPECT_TRUE(pass(ranks, 14s, {10, 40}).empty());
  EXPECT_EQ(pass(ranks, 2s, {10, 40}), std::vector<std::size_t>{1});
}

}  // namespace
}  // namespace stratagem
