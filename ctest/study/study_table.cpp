#include "study/study_table.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "study/measures.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

CellResult complete(std::string const& group, int seed, double accuracy, double time_s) {
  CellResult cell{
      .entry = {.index = seed,
                .name = str(group, "-s", seed),
                .group = group,
                .seed = static_cast<std::uint64_t>(seed)},
      .status = {.state = CellState::complete, .reason = "epochs done"},
      .summary = RunSummary{.name = "x", .train_time_s = time_s, .test_accuracy = accuracy},
      .git_sha = "abc"};
  return cell;
}

CellResult failed(std::string const& group, int seed) {
  return {.entry = {.index = seed, .name = str(group, "-s", seed), .group = group},
          .status = {.state = CellState::failed,
                     .reason = "out of memory\nmore",
                     .code = ExitCode::out_of_memory},
          .summary = {},
          .git_sha = "abc"};
}

std::vector<std::string> rows(Table const& table) {
  return split(table.render(TableFormat::csv), '\n');
}

TEST(StudyTable, SpreadIsMedianLeastAndGreatest) {
  EXPECT_EQ(Spread::of({3, 1, 2}).text(1), "2.0 [1.0, 3.0]");
  EXPECT_EQ(Spread::of({4, 1, std::nan(""), 2, 3}).text(2), "2.50 [1.00, 4.00]");
  EXPECT_EQ(Spread::of({4, 1, std::nan(""), 2, 3}).count, 4U);
  EXPECT_EQ(Spread::of({7}).text(0), "7");
  EXPECT_EQ(Spread::of({std::nan("")}).text(0), "-");
}

TEST(StudyTable, ARowPerGroupOverItsCompleteCells) {
  std::vector<CellResult> cells{complete("a", 1, 0.9, 10), complete("b", 1, 0.5, 7),
                                complete("a", 2, 0.7, 30), complete("a", 3, 0.8, 20),
                                failed("a", 4)};
  cells[1].status.reason = "time_limit";
  auto const table = rows(study_table(cells, false));
  EXPECT_EQ(
      table.at(1),
      "a,1,3,\"80.00 [70.00, 90.00]\",\"20.00 [10.00, 30.00]\",-,-,-,-,\"3 complete, 1 failed "
      "(86)\"");
  EXPECT_EQ(table.at(2), "b,1,1,50.00,> 7.00,-,-,-,-,1 complete");
}

TEST(StudyTable, ProgramsGetANumberPerColumn) {
  std::vector<CellResult> cells{complete("a", 1, 0.9, 10), complete("a", 2, 0.7, 30),
                                complete("a", 3, std::nan(""), 20), failed("a", 4)};
  auto const lines = rows(study_numbers(cells, false));
  auto const titles = csv_fields(lines.at(0)), values = csv_fields(lines.at(1));
  ASSERT_EQ(titles.size(), values.size());
  auto const value = [&](std::string const& title) {
    auto const at = std::ranges::find(titles, title) - titles.begin();
    return values.at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(value("n"), "3") << "complete ones";
  EXPECT_EQ(value("test_accuracy_n"), "2") << "known ones";
  EXPECT_EQ(value("test_accuracy_least"), "0.7");
  EXPECT_EQ(value("test_accuracy_greatest"), "0.9");
  EXPECT_EQ(value("train_time_s_median"), "20");
  EXPECT_EQ(value("step_ms_median"), "");
  EXPECT_EQ(value("step_ms_n"), "0");
  EXPECT_EQ(value("state"), "3 complete, 1 failed (86)");

  auto const group = nlohmann::json::parse(study_json(cells)).at("groups").at(0);
  EXPECT_EQ(group.at("group"), "a");
  EXPECT_EQ(group.at("train_time_s"),
            nlohmann::json({{"median", 20.0}, {"least", 10.0}, {"greatest", 30.0}, {"n", 3}}));
  EXPECT_TRUE(group.at("step_ms").at("median").is_null());
  for (auto const& measure : measures()) EXPECT_TRUE(group.contains(measure.name)) << measure.name;
}

TEST(StudyTable, WhatCannotBeComparedIsMarked) {
  std::vector<CellResult> cells{complete("a", 1, 0.9, 10), complete("b", 1, 0.9, 10)};
  EXPECT_EQ(commits_of(cells), std::vector<std::string>{"abc"});
  cells[1].git_sha = "def";
  EXPECT_EQ(commits_of(cells).size(), 2U);
  auto const table = rows(study_table(cells, true));
  EXPECT_TRUE(table.at(1).ends_with(",1 complete,")) << table.at(1);
  EXPECT_TRUE(table.at(2).ends_with(",1 complete,mixed")) << table.at(2);
}

TEST(StudyTable, MissingCellsSayWhyAndWhatRepeatsThem) {
  test::Scratch const folder;
  Study study{.name = "s", .file = "s.yaml", .text = "x\n", .overrides = {}, .cells = {}};
  auto const directory = StudyDirectory::prepare(folder / "d", study);
  auto const table = rows(missing_table({complete("a", 1, 1, 1), failed("a", 4)}, directory));
  ASSERT_EQ(table.size(), 3U) << "titles, a row, the end";
  EXPECT_EQ(table[1], "a-s4,failed,out of memory,stratagem sweep s.yaml --index 4 --out " +
                          (folder / "d").string());
}

TEST(StudyTable, CellsThatHaveNotBegunDoNotHideTheOthers) {
  std::vector<CellResult> cells;
  for (int seed = 1; seed <= 100; ++seed) {
    auto cell = failed(str("late", seed / 50), seed);
    cell.status = {.state = CellState::missing, .reason = "not started"};
    cells.push_back(cell);
  }
  cells.push_back(complete("a", 101, 1, 1));
  cells.push_back(failed("a", 102));
  cells.push_back(failed("a", 103));
  auto const table = rows(study_table(cells, false));
  ASSERT_EQ(table.size(), 3U) << "titles, a row, the end";
  EXPECT_TRUE(table[1].ends_with("\"1 complete, 2 failed (86)\"")) << table[1];

  test::Scratch const folder;
  Study study{.name = "s", .file = "s.yaml", .text = "x\n", .overrides = {}, .cells = {}};
  auto const directory = StudyDirectory::prepare(folder / "d", study);
  auto const missing = rows(missing_table(cells, directory));
  ASSERT_EQ(missing.size(), 1U + 20 + 2 + 1 + 1) << "titles, not begun, failed, others, the end";
  EXPECT_TRUE(missing[21].starts_with("a-s102,failed,")) << missing[21];
  EXPECT_EQ(missing[23], "and 80 more,missing,not started,stratagem sweep s.yaml --all --out " +
                             (folder / "d").string());
}

TEST(StudyTable, TheSummaryHasARowPerCellInFull) {
  auto const lines = split(summary_csv({complete("a", 1, 1.0 / 3, 10), failed("a", 4)}), '\n');
  auto const titles = csv_fields(lines.at(0));
  for (auto const& line : {lines.at(1), lines.at(2)})
    ASSERT_EQ(csv_fields(line).size(), titles.size()) << line;
  auto const value = [&](int line, std::string const& title) {
    auto const at = std::find(titles.begin(), titles.end(), title) - titles.begin();
    return csv_fields(lines.at(static_cast<std::size_t>(line))).at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(value(1, "test_accuracy"), shortest(1.0 / 3));
  EXPECT_EQ(value(1, "images_per_s"), "");
  EXPECT_EQ(value(1, "status"), "complete");
  EXPECT_EQ(value(2, "reason"), "out of memory") << "one line";
  EXPECT_EQ(value(2, "exit_code"), "86");
  auto const json = nlohmann::json::parse(study_json({complete("a", 1, 0.5, 10)})).at("cells");
  EXPECT_EQ(json.at(0).at("test_accuracy"), 0.5);
  EXPECT_TRUE(json.at(0).at("step_ms").is_null());
}

}  // namespace
}  // namespace stratagem
