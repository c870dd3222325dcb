#include "base/hash/hash.hpp"

#include <set>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(Hash, TellsApartNumbersTheirOrderAndCount) {
  std::set<std::uint64_t> seen{Hash().value()};
  auto is_new = [&](Hash const& hash) { return seen.insert(hash.value()).second; };
  EXPECT_TRUE(is_new(Hash().add(std::uint64_t{0})));
  EXPECT_TRUE(is_new(Hash().add(std::uint64_t{0}).add(std::uint64_t{0})));
  EXPECT_TRUE(is_new(Hash().add(std::uint64_t{1}).add(std::uint64_t{2})));
  EXPECT_TRUE(is_new(Hash().add(std::uint64_t{2}).add(std::uint64_t{1})));
}

TEST(Hash, TellsApartTextsAndWhereTheyEnd) {
  std::set<std::uint64_t> seen{Hash().value()};
  auto is_new = [&](Hash const& hash) { return seen.insert(hash.value()).second; };
  EXPECT_TRUE(is_new(Hash().add("")));
  EXPECT_TRUE(is_new(Hash().add("ab").add("c")));
  EXPECT_TRUE(is_new(Hash().add("a").add("bc")));
  EXPECT_TRUE(is_new(Hash().add(std::string_view("a\0", 2))));
  EXPECT_TRUE(is_new(Hash().add("a")));
}

TEST(Hash, OneBitChangesAboutHalfOfTheBits) {
  auto const base = Hash().add(std::uint64_t{42}).value();
  int changed = 0;
  for (int bit = 0; bit < 64; ++bit)
    changed +=
        std::popcount(base ^ Hash().add(std::uint64_t{42} ^ std::uint64_t{1} << bit).value());
  EXPECT_NEAR(changed / 64.0, 32, 4);
}

TEST(Hash, HexIsTheValue) {
  auto const hash = Hash().add("stratagem");
  EXPECT_EQ(hash.hex().size(), 16U);
  EXPECT_EQ(std::stoull(hash.hex(), nullptr, 16), hash.value());
}

}  // namespace
}  // namespace stratagem
