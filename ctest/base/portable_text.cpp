#include "base/portable_text.hpp"

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(PortableText, PrintsOnOneLine) {
  EXPECT_EQ(printable("a\nb\xff\xc3\xa9\"\\"), "a\\x0ab\\xff\xc3\xa9\"\\");
}

TEST(PortableText, IsUtf8WithoutNul) {
  for (auto const* good :
       {"", "plain", "\x7f", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_portable_text(good)) << good;
  for (auto const* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x82"})
    EXPECT_FALSE(is_portable_text(bad)) << printable(bad);
  EXPECT_FALSE(is_portable_text(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace stratagem
