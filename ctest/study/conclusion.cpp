#include "study/conclusion.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "support/traces.hpp"

namespace stratagem {
namespace {

using gpu::MemoryCategory;

constexpr std::int64_t MiB = 1 << 20;

ComparedRun run(std::string const& name, std::string const& strategy, double images_per_s,
                std::string const& digest = "") {
  ComparedRun run{.summary = {.name = name, .strategy = strategy, .model = "lenet", .ranks = 2},
                  .digest = digest};
  run.summary.images_per_s = images_per_s;
  run.summary.peak[MemoryCategory::parameters] = 4 * MiB;
  return run;
}

std::string said(std::vector<ComparedRun> const& runs) {
  return join(conclusions(runs), "\n");
}

TEST(Conclusion, TheFastestIsNamedWithHowFarTheOthersAreBehind) {
  auto const text = said({run("a", "ddp", 90), run("b", "fsdp", 100), run("c", "ps", 75)});
  EXPECT_NE(text.find("fastest: b with 100 images/s; a 10 % slower, c 25 %"), text.npos) << text;
}

TEST(Conclusion, WhatMayBeChanceIsSaid) {
  auto runs = std::vector{run("a", "ddp", 90), run("b", "fsdp", 100)};
  EXPECT_NE(said(runs).find("each ran once"), std::string::npos);
  EXPECT_EQ(said(runs).find("differed"), std::string::npos) << "of one epoch nothing is known";
  runs[0].epochs_differ = 0.07;
  EXPECT_NE(said(runs).find("differed by up to 7 %"), std::string::npos) << said(runs);
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

TEST(Conclusion, EpochsDifferByTheirSpeed) {
  trace::RunTraces traces{{empty_trace(0)}, {}};
  add_row(traces.ranks[0], "/epochs", {{"images_per_s", 80}});
  EXPECT_EQ(difference_of_epochs(traces), 0);
  add_row(traces.ranks[0], "/epochs", {{"images_per_s", 100}});
  EXPECT_DOUBLE_EQ(difference_of_epochs(traces), 1 - 80.0 / 100);
}

}  // namespace
}  // namespace stratagem
