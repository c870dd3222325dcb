#include "base/table.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

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

TEST(Table, LatexEscapes) {
  EXPECT_EQ(sample().render(TableFormat::latex),
            "\\begin{tabular}{lr}\n\\toprule\nmodel & time, s \\\\\n\\midrule\n"
            "a\\_b & 1.50 \\\\\nsay \"µ\" & 12.25 \\\\\n\\bottomrule\n\\end{tabular}\n");
}

TEST(Table, ARowOfAnotherLengthIsABug) {
  Table table({{"one"}});
  EXPECT_TRUE(table.empty());
  EXPECT_THROW(table.add_row({"1", "2"}), std::logic_error);
}

}  // namespace
}  // namespace stratagem
