#include "crypto/shamir.hpp"

#include <bit>
#include <set>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "crypto/hex.hpp"

namespace stratagem::crypto {
namespace {

using gf256::inverse;
using gf256::multiply;
using test::to_hex;

Share copy_of(Share const& share) {
  return {share.point, share.value.copy()};
}

/// Those whose bits are set.
std::vector<Share> chosen(std::vector<Share> const& shares, unsigned subset) {
  std::vector<Share> found;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (subset >> i & 1) found.push_back(copy_of(shares[i]));
  return found;
}

/// FIPS 197, sections 4.2 and 4.2.1.
TEST(Shamir, ComputesInTheFieldOfAes) {
  EXPECT_EQ(multiply(0x57, 0x83), 0xc1);
  EXPECT_EQ(multiply(0x57, 0x13), 0xfe);
  EXPECT_EQ(multiply(0x57, 0x02), 0xae);
  EXPECT_EQ(multiply(0x57, 0x08), 0x8e);
  EXPECT_EQ(inverse(0x53), 0xca);
}

TEST(Shamir, TheFieldIsOne) {
  for (int i = 0; i < 256; ++i) {
    auto const a = static_cast<std::uint8_t>(i);
    EXPECT_EQ(multiply(a, 1), a);
    EXPECT_EQ(multiply(a, 0), 0);
    EXPECT_EQ(multiply(a, inverse(a)), a == 0 ? 0 : 1);
    for (int j = 0; j < 256; ++j) {
      auto const b = static_cast<std::uint8_t>(j);
      ASSERT_EQ(multiply(a, b), multiply(b, a));
      for (int const k : {2, 3, 0x1b, 0x80, 0xff, i ^ j}) {
        auto const c = static_cast<std::uint8_t>(k);
        ASSERT_EQ(multiply(multiply(a, b), c), multiply(a, multiply(b, c)));
        ASSERT_EQ(multiply(static_cast<std::uint8_t>(a ^ b), c), multiply(a, c) ^ multiply(b, c));
      }
    }
  }
}

/// Of all subsets of up to 7 shares: those of the threshold's size rebuild the secret, smaller ones
/// something else.
TEST(Shamir, AsManyAsTheThresholdRebuildAndFewerDoNot) {
  for (int shares = 1; shares <= 7; ++shares)
    for (int threshold = 1; threshold <= shares; ++threshold) {
      auto const secret = random_secret();
      auto const all = split(secret, threshold, shares);
      ASSERT_EQ(all.size(), static_cast<std::size_t>(shares));
      for (unsigned subset = 1; subset < 1U << shares; ++subset) {
        auto const rebuilt = combine(chosen(all, subset));
        bool const enough = std::popcount(subset) >= threshold;
        EXPECT_EQ(to_hex(rebuilt.bytes()) == to_hex(secret.bytes()), enough)
            << subset << " of " << shares << ", threshold " << threshold;
      }
    }
}

TEST(Shamir, TheMostSharesAreSharesToo) {
  auto const secret = random_secret();
  auto const all = split(secret, 170, most_shares);
  std::vector<Share> last;
  for (std::size_t i = all.size() - 170; i < all.size(); ++i) last.push_back(copy_of(all[i]));
  EXPECT_EQ(last.back().point, 255);
  EXPECT_EQ(to_hex(combine(last).bytes()), to_hex(secret.bytes()));
}

/// A share of the same secret is another one each time.
TEST(Shamir, SharesAreRandom) {
  auto const secret = random_secret();
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i)
    for (auto const& share : split(secret, 2, 3)) seen.insert(to_hex(share.value.bytes()));
  EXPECT_EQ(seen.size(), 150U);
  EXPECT_FALSE(seen.contains(to_hex(secret.bytes())));
}

TEST(Shamir, WrongPointsAreRefused) {
  auto const all = split(random_secret(), 2, 3);
  std::vector<Share> twice = chosen(all, 0b011), zero = chosen(all, 0b011);
  twice[1].point = twice[0].point;
  zero[0].point = 0;
  for (auto const& [shares, words] :
       {std::pair{&twice, "at point 1, where there is one"}, {&zero, "which is the secret's own"}})
    try {
      static_cast<void>(combine(*shares));
      ADD_FAILURE() << words;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace stratagem::crypto
