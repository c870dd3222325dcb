#include "crypto/secret.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "crypto/hex.hpp"

namespace stratagem::crypto {
namespace {

constexpr auto some = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
std::string const zeros(64, '0');

TEST(Secret, LeavesNothingWhereItWas) {
  alignas(Secret) std::array<std::uint8_t, sizeof(Secret)> memory{};
  auto* const secret = new (memory.data()) Secret(test::secret_of(some));
  ASSERT_EQ(test::to_hex(secret->bytes()), some);
  Secret moved = std::move(*secret);
  EXPECT_EQ(test::to_hex(memory), zeros);
  *secret = std::move(moved);
  EXPECT_EQ(test::to_hex(moved.bytes()), zeros);
  EXPECT_EQ(test::to_hex(memory), some);
  secret->~Secret();
  EXPECT_EQ(test::to_hex(memory), zeros);
}

/// Each bit is 1 in half of many; some of the 256 is beyond 7 standard deviations once in 10^9
/// runs.
TEST(Secret, RandomBytesAreOfAllKinds) {
  constexpr int drawn = 1000;
  std::array<int, 8 * Secret::size> ones{};
  for (int i = 0; i < drawn; ++i) {
    auto const secret = random_secret();
    for (std::size_t bit = 0; bit < ones.size(); ++bit)
      ones[bit] += secret.bytes()[bit / 8] >> bit % 8 & 1;
  }
  for (auto const count : ones)
    EXPECT_LT(std::abs(count - drawn / 2), 7 * std::sqrt(drawn / 4.0)) << count;
  std::vector<std::uint8_t> many(100000);
  fill_random(many);
  EXPECT_LT(std::count(many.begin(), many.end(), 0), 1000);
}

}  // namespace
}  // namespace stratagem::crypto
