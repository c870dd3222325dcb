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

TEST(TextForm, FindsBytesThatNoFileHas) {
  EXPECT_EQ(find_foreign_byte("a\tb\r\n\xc3\xa9"), std::string_view::npos);
  EXPECT_EQ(find_foreign_byte("\xc3\xa9\x04"), 2U);
  EXPECT_EQ(find_foreign_byte("ab\xc3"), 2U);
  EXPECT_EQ(find_foreign_byte(std::string_view("\0", 1)), 0U);
}

}  // namespace
}  // namespace stratagem
