#include "keys/text_form.hpp"

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(TextForm, QuotesWhatYamlWouldTakeForSomethingElse) {
  EXPECT_EQ(yaml_quoted(""), "\"\"");
  EXPECT_EQ(yaml_quoted("a\"b\\c\n\t\x04\x7f"), "\"a\\\"b\\\\c\\n\\t\\x04\\x7f\"");
}

TEST(TextForm, AbridgesBetweenCodePoints) {
  std::string text(59, 'a');
  text += "\xc3\xa9 and more";
  EXPECT_EQ(abridged(text), "\"" + std::string(59, 'a') + "\"...");
  EXPECT_EQ(abridged("short"), "\"short\"");
}

TEST(TextForm, ShowsWordsAsTheyAre) {
  EXPECT_EQ(shown_key("bucket_mb"), "bucket_mb");
  EXPECT_EQ(shown_key("a.b"), "\"a.b\"");
  EXPECT_EQ(shown_key("\x1b[2J"), "\"\\x1b[2J\"");
  EXPECT_EQ(shown_key(""), "\"\"");
}

TEST(TextForm, PrintsOnOneLine) {
  EXPECT_EQ(printable("a\nb\xff\xc3\xa9\"\\"), "a\\x0ab\\xff\xc3\xa9\"\\");
}

TEST(TextForm, FindsBytesThatNoFileHas) {
  EXPECT_EQ(find_foreign_byte("a\tb\r\n\xc3\xa9"), std::string_view::npos);
  EXPECT_EQ(find_foreign_byte("\xc3\xa9\x04"), 2U);
  EXPECT_EQ(find_foreign_byte("ab\xc3"), 2U);
  EXPECT_EQ(find_foreign_byte(std::string_view("\0", 1)), 0U);
}

TEST(TextForm, PortableTextIsUtf8WithoutNul) {
  for (auto const* good :
       {"", "plain", "\x7f", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_portable_text(good)) << good;
  for (auto const* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x82"})
    EXPECT_FALSE(is_portable_text(bad)) << abridged(bad);
  EXPECT_FALSE(is_portable_text(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace stratagem
