#include "base/text.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

using Texts = std::vector<std::string>;

TEST(Text, SplitAndJoinAreInverse) {
  for (auto const& parts : {Texts{""}, Texts{"a"}, Texts{"a", "", "b"}, Texts{"", ""}})
    EXPECT_EQ(split(join(parts, ","), ','), parts);
  EXPECT_EQ(join({}, ","), "");
  EXPECT_EQ(str("rank ", 3, ": ", 0.5), "rank 3: 0.5");
}

TEST(Text, Trim) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
}

TEST(Text, SuggestsOnlyLikelyMisspellings) {
  Texts const words{"bucket_mb", "overlap", "micro_batches"};
  EXPECT_EQ(closest("overlpa", words), "overlap");
  EXPECT_EQ(closest("bucket-mb", words), "bucket_mb");
  EXPECT_EQ(closest("rnu", Texts{"plan", "run"}), "run") << "two letters swapped are one mistake";
  EXPECT_EQ(closest("zzz", words), std::nullopt);
  EXPECT_EQ(did_you_mean("overlaps", words), " (did you mean \"overlap\"?)");
  EXPECT_EQ(did_you_mean("zzz", words), "");
}

TEST(Text, BytesReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("1K"), 1024);
  EXPECT_EQ(parse_bytes("256M"), 268'435'456);
  EXPECT_EQ(parse_bytes("80GiB"), 85'899'345'920);
  EXPECT_EQ(parse_bytes("80 GiB"), 85'899'345'920);
  EXPECT_EQ(parse_bytes("1.5kB"), 1536);
  for (auto const* same : {"24GiB", "24gib", "24GB", "24gb", "24g", "24 GIB"})
    EXPECT_EQ(parse_bytes(same), 25'769'803'776) << same;
  for (auto const* wrong : {"", "K", "-1", "1X", "1KK", "1GiBs", "nan", "99999999999T", "1e3"})
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
}

TEST(Text, BytesPrintInTheUnitThatReads) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(537'206'056), "512 MiB");
  EXPECT_EQ(format_bytes(std::nan("")), "-");
}

TEST(Text, DurationsPrintInTheUnitThatReads) {
  EXPECT_EQ(format_duration(0.0000123), "12.3 us");
  EXPECT_EQ(format_duration(0.0123), "12.3 ms");
  EXPECT_EQ(format_duration(99.94), "99.9 s");
  EXPECT_EQ(format_duration(119.6), "2m00s");
  EXPECT_EQ(format_duration(4000), "1h06m40s");
  EXPECT_EQ(format_duration(std::nan("")), "-");
  EXPECT_EQ(format_whole_seconds(0.7243), "1 s");
  EXPECT_EQ(format_whole_seconds(99.4), "99 s");
  EXPECT_EQ(format_whole_seconds(99.6), "1m40s");
  EXPECT_EQ(format_whole_seconds(std::nan("")), "-");
}

TEST(Text, CountsAreGrouped) {
  EXPECT_EQ(format_count(134'301'514), "134,301,514");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(-999), "-999");
  EXPECT_EQ(format_number(2.0 / 3, 2), "0.67");
  EXPECT_EQ(format_number(std::nan(""), 2), "-");
}

TEST(Text, NumbersAreTheWholeTextOrNothing) {
  EXPECT_EQ(parse_integer("-42"), -42);
  EXPECT_EQ(parse_number("1e-3"), 1e-3);
  for (auto const* wrong : {"", " 1", "1 ", "1x", "0x1", "+1", "nan", "inf", "1e999"}) {
    EXPECT_EQ(parse_integer(wrong), std::nullopt) << wrong;
    EXPECT_EQ(parse_number(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
}

TEST(Text, ShortestReadsBackTheSame) {
  EXPECT_EQ(shortest(0.1), "0.1");
  for (double value : {0.01, 1.0 / 3, 1e300, -0.0, std::numeric_limits<double>::denorm_min()})
    EXPECT_EQ(parse_number(shortest(value)), value);
}

}  // namespace
}  // namespace stratagem
