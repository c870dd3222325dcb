#include "base/console/paragraph.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace stratagem::test {
namespace {

TEST(Paragraph, LinesFitATerminal) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += (i > 0 ? " word" : "word");
  auto const text = paragraph(words);
  EXPECT_TRUE(text.ends_with("word\n"));
  for (auto const& line : split(text, '\n')) EXPECT_LE(line.size(), 79u);
}

TEST(Paragraph, ANumberKeepsItsUnit) {
  for (std::size_t length = 60; length < 80; ++length) {
    auto const text = paragraph(std::string(length, 'x') + " (64 %) of 10.5 GiB");
    EXPECT_EQ(text.find("(64\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("10.5\n"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace stratagem::test
