#include "base/console/table.hpp"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace stratagem {
namespace {

Table sample() {
  Table table({{"model", Align::left}, {"time, s"}});
  table.add_row({"a_b", "1.50"});
  table.add_row({"say \"µ\"", "12.25"});
  return table;
}

TEST(Table, TextAlignsByCharactersNotBytes) {
  EXPECT_EQ(sample().render(),
            "model    time, s\n"
            "-------  -------\n"
            "a_b         1.50\n"
            "say \"µ\"    12.25\n");
}

TEST(Table, Markdown) {
  EXPECT_EQ(sample().render(TableFormat::markdown),
            "| model | time, s |\n| --- | ---: |\n| a_b | 1.50 |\n| say \"µ\" | 12.25 |\n");
}

TEST(Table, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(sample().render(TableFormat::csv),
            "model,\"time, s\"\na_b,1.50\n\"say \"\"µ\"\"\",12.25\n");
}

TEST(Table, CsvHasNumbersThatProgramsRead) {
  Table table({{"what", Align::left}});
  for (auto const* cell :
       {"1,234", "12,345,678", "999", "1234,567", "1,23", ",123", "1,234 of 5,678"})
    table.add_row({cell});
  EXPECT_EQ(table.render(TableFormat::csv),
            "what\n1234\n12345678\n999\n\"1234,567\"\n\"1,23\"\n\",123\"\n\"1,234 of 5,678\"\n");
  EXPECT_NE(table.render().find("12,345,678"), std::string::npos);
}

TEST(Table, LatexEscapes) {
  EXPECT_EQ(sample().render(TableFormat::latex),
            "% needs \\usepackage{booktabs}\n"
            "\\begin{tabular}{lr}\n\\toprule\nmodel & time, s \\\\\n\\midrule\n"
            "a\\_b & 1.50 \\\\\nsay \"µ\" & 12.25 \\\\\n\\bottomrule\n\\end{tabular}\n");
}

TEST(Table, LatexShowsWhatItWouldTakeForItsOwn) {
  Table table({{"x", Align::left}});
  table.add_row({"> 1.5 ~ a\\b ^ 50 %"});
  EXPECT_NE(table.render(TableFormat::latex)
                .find("$>$ 1.5 \\textasciitilde{} a\\textbackslash{}b \\textasciicircum{} 50 \\% "),
            std::string::npos);
}

TEST(Table, ItsNoteStandsWhereReadersFindIt) {
  auto table = sample();
  table.set_note("a note");
  EXPECT_TRUE(table.render().ends_with("12.25\na note\n"));
  EXPECT_TRUE(table.render(TableFormat::markdown).ends_with("12.25 |\n\na note\n"));
  EXPECT_NE(table.render(TableFormat::latex).find("\n% a note\n\\begin{tabular}"),
            std::string::npos);
  EXPECT_EQ(table.render(TableFormat::csv), sample().render(TableFormat::csv));
}

std::size_t widest_line(std::string const& text) {
  std::size_t widest = 0;
  for (auto const& line : split(text, '\n')) widest = std::max(widest, line.size());
  return widest;
}

TEST(Table, WhereItFitsTheTerminalItIsAsInAFile) {
  EXPECT_EQ(sample().render_within(17), sample().render());
  EXPECT_EQ(sample().render_within(0), sample().render());
}

TEST(Table, TitlesAndTextsGoOnInTheNextLine) {
  Table table({{"cell", Align::left}, {"sent per step"}, {"reason", Align::left}});
  table.add_row({"a", "1.5", "the disk is full, and there is no checkpoint"});
  table.add_row({"b", "12.25", "the disk is full, and there is no checkpoint"});
  table.add_row({"c", "7", "short"});
  EXPECT_EQ(table.render_within(41),
            "cell  sent per step  reason\n"
            "----  -------------  --------------------\n"
            "a               1.5  the disk is full,\n"
            "                     and there is no\n"
            "                     checkpoint\n"
            "b             12.25  as above\n"
            "c                 7  short\n");
  EXPECT_EQ(table.render_within(34),
            "cell    sent  reason\n"
            "         per\n"
            "        step\n"
            "----  ------  --------------------\n"
            "a        1.5  the disk is full,\n"
            "              and there is no\n"
            "              checkpoint\n"
            "b      12.25  as above\n"
            "c          7  short\n");
}

TEST(Table, WhatDoesNotFitFollowsInTablesOfItsOwn) {
  Table table({{"run", Align::left}, {"time"}, {"memory"}, {"bytes"}});
  table.add_row({"first", "1.5", "1000000", "12"});
  EXPECT_EQ(table.render_within(20),
            "run    time   memory\n"
            "-----  ----  -------\n"
            "first   1.5  1000000\n"
            "\n"
            "run    bytes\n"
            "-----  -----\n"
            "first     12\n");
}

TEST(Table, NoLineIsWiderThanTheTerminal) {
  Table table({{"key", Align::left}, {"value"}, {"meaning", Align::left}, {"why", Align::left}});
  table.add_row({"checkpoint.every_minutes", "1234567", std::string(90, 'x'),
                 "one two three four five six seven eight nine ten eleven twelve thirteen"});
  for (int columns = 50; columns < 240; ++columns)
    EXPECT_LE(widest_line(table.render_within(columns)), static_cast<std::size_t>(columns));
}

TEST(Table, ARowOfAnotherLengthIsABug) {
  Table table({{"one"}});
  EXPECT_TRUE(table.empty());
  EXPECT_THROW(table.add_row({"1", "2"}), std::logic_error);
}

}  // namespace
}  // namespace stratagem
