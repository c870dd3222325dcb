#include "base/console/fit_text.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/console/table.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

Table sample() {
  Table table({{"run", Align::left}, {"ms"}, {"why", Align::left}});
  table.add_row({"first", "1.5", "one two three four five six"});
  table.add_row({"µ", "12.25", ""});
  return table;
}

std::size_t widest_line(std::string const& text) {
  std::size_t widest = 0;
  for (auto const& line : split(text, '\n')) widest = std::max(widest, line.size());
  return widest;
}

TEST(FitText, ATableThatIsTooWideIsLaidOutAnew) {
  auto const fitted = fit_text("before\n\n" + sample().render() + "\nafter\n", 36);
  EXPECT_EQ(fitted, "before\n\n" + sample().render_within(36) + "\nafter\n");
}

TEST(FitText, TextBesideTablesIsFolded) {
  auto const fitted =
      fit_text(sample().render() + "one sentence that is longer than forty columns are\n", 40);
  EXPECT_LE(widest_line(fitted), 40U) << fitted;
  EXPECT_NE(fitted.find("that is longer than forty\n  columns are\n"), fitted.npos) << fitted;
}

TEST(FitText, WhatFitsIsNotTouched) {
  auto const text = sample().render() + "\n  indented  text\n";
  EXPECT_EQ(fit_text(text, 80), text);
  EXPECT_EQ(fit_text(text, 0), text);
}

TEST(FitText, WhatProgramsReadIsNotTouched) {
  for (auto const format : {TableFormat::csv, TableFormat::markdown, TableFormat::latex}) {
    auto const text = sample().render(format);
    EXPECT_EQ(fit_text(text, 10), text);
  }
  std::string const json = "{\"reason\": \"a text that is longer than ten columns\"}\n";
  EXPECT_EQ(fit_text(json, 10), json);
}

TEST(FitText, TheEndIsAsItWas) {
  EXPECT_EQ(fit_text("", 10), "");
  EXPECT_EQ(fit_text("a\n-\nb", 10), "a\n-\nb");
}

}  // namespace
}  // namespace stratagem
