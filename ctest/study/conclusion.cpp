#include "study/conclusion.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace stratagem {
namespace {

using gpu::MemoryCategory;

constexpr std::int64_t MiB = 1 << 20;

ComparedRun run(std::string const& name, std::string const& strategy, double images_per_s,
                std::string const& digest = "") {
  ComparedRun run{.summary = {.name = name, .strategy = strategy, .model = "lenet", .ranks = 2},
                  .digest = digest,
                  .of = name};
  run.summary.images_per_s = images_per_s;
  run.summary.peak[MemoryCategory::parameters] = 4 * MiB;
  return run;
}

/// Speeds of a, b, c, d and e, a line for each round.
std::vector<ComparedRun> rounds(std::vector<std::vector<double>> const& speeds) {
  std::vector<ComparedRun> runs;
  for (auto const& round : speeds)
    for (std::size_t i = 0; i < round.size(); ++i)
      runs.push_back(run(std::string(1, static_cast<char>('a' + i)), "ddp", round[i]));
  return runs;
}

std::string said(std::vector<ComparedRun> const& runs) {
  return join(conclusions(runs), "\n");
}

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST(Conclusion, TheFastestIsNamedWhereRoundsTellItApart) {
  auto const text = said(rounds({{75, 100, 90}, {76, 101, 91}, {74, 99, 89}}));
  EXPECT_TRUE(contains(text, "fastest: b with 100 images/s; slower: a 25 %, c 10 %")) << text;
  EXPECT_TRUE(contains(text, "in 3 rounds, runs of the same differed by up to ")) << text;
}

TEST(Conclusion, WhatChanceMayDoIsNotToldApart) {
  auto const text = said(rounds({{60, 100, 97}, {60, 96, 101}, {61, 100, 95}}));
  EXPECT_TRUE(contains(text,
                       "fastest, or not told apart: b with 99 images/s, c 1.0 % less; "
                       "slower: a 39 %"))
      << text;
}

TEST(Conclusion, WhatAllRunsOfARoundHaveInCommonIsNoNoise) {
  auto const text = said(rounds({{75, 100, 90}, {38, 50, 45}, {75, 100, 90}}));
  EXPECT_TRUE(contains(text, "fastest: b with 79 images/s; slower: a 25 %, c 10 %")) << text;
}

TEST(Conclusion, OfOneRoundNothingIsToldApart) {
  auto const text = said(rounds({{10, 100, 90}}));
  EXPECT_TRUE(
      contains(text, "fastest, or not told apart: b with 100 images/s, a 90 %, c 10 % less"))
      << text;
  EXPECT_TRUE(contains(text, "each ran once: no difference in speed is told from chance")) << text;
}

TEST(Conclusion, EqualOnesAreSeldomToldApart) {
  std::mt19937 random(1);  // NOLINT: the same each time
  std::normal_distribution<double> noise(0, 0.03);
  for (std::size_t const count : {2, 3, 4}) {
    int wrong = 0;
    constexpr int comparisons = 1000;
    for (int i = 0; i < comparisons; ++i) {
      std::vector<std::vector<double>> speeds(count, std::vector<double>(5));
      for (auto& round : speeds)
        for (std::size_t one = 0; one < round.size(); ++one)
          round[one] = 100 * std::exp(noise(random) * (one == 0 ? 3 : 1));
      wrong += contains(said(rounds(speeds)), "slower: ") ? 1 : 0;
    }
    EXPECT_LT(wrong, 75) << count << " rounds";
  }
}

TEST(Conclusion, OtherWorkOnTheCoresIsTold) {
  auto runs = rounds({{75, 100}, {75, 100}});
  runs[2].core_share = 0.95;
  EXPECT_FALSE(contains(said(runs), "cores")) << said(runs);
  runs[3].core_share = 0.71;
  EXPECT_TRUE(contains(said(runs), "something else used the cores for 29 % of the time of b"))
      << said(runs);
  runs[3].core_share = std::nan("");
  EXPECT_FALSE(contains(said(runs), "cores")) << said(runs);
}

TEST(Conclusion, WhyAShardedRunHoldsMoreOrLess) {
  auto runs = std::vector{run("ddp", "ddp", 90), run("fsdp", "fsdp", 100)};
  runs[0].summary.peak[MemoryCategory::optimizer] = 4 * MiB;
  runs[1].summary.peak[MemoryCategory::optimizer] = 2 * MiB;
  EXPECT_NE(said(runs).find("fsdp holds 2.0 MiB less than ddp"), std::string::npos) << said(runs);
  runs[1].summary.peak[MemoryCategory::gradients] = 9 * MiB;
  auto const text = said(runs);
  EXPECT_NE(text.find("fsdp holds 7.0 MiB more than ddp: it shares out the optimizer's state "
                      "(2.0 MiB for 4.0 MiB), but slots"),
            text.npos)
      << text;
  EXPECT_NE(text.find("parameters and gradients 13.0 MiB for 4.0 MiB"), text.npos) << text;
  EXPECT_NE(text.find("most: fsdp with 15.0 MiB"), text.npos) << text;
}

TEST(Conclusion, WhoEndedWithTheSameParameters) {
  auto const text = said({run("a", "serial", 1, "x"), run("b", "ddp", 1, "y"),
                          run("c", "fsdp", 1, "y"), run("d", "ps", 1)});
  EXPECT_NE(text.find("bit for bit: b, c"), text.npos) << text;
  EXPECT_EQ(said({run("a", "serial", 1, "x"), run("b", "ddp", 1, "y")}).find("bit for bit"),
            std::string::npos);
}

TEST(Conclusion, OfOneRunOrWithoutNumbersNothingIsInvented) {
  EXPECT_EQ(said({run("a", "ddp", 90)}), "");
  auto const text =
      said({run("a", "ddp", RunSummary::unknown), run("b", "ps", RunSummary::unknown)});
  EXPECT_EQ(text.find("fastest"), text.npos) << text;
}

}  // namespace
}  // namespace stratagem
