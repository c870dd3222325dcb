#include "base/hash/bulk_hash.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace stratagem {
namespace {

std::vector<std::byte> random_bytes(std::size_t size) {
  CounterRandom const random(3, "bytes");
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(random.word(i));
  return bytes;
}

TEST(BulkHash, EveryBitCounts) {
  for (std::size_t const size : {1, 7, 64, 65, 200}) {
    auto bytes = random_bytes(size);
    std::set<std::uint64_t> seen{bulk_hash(bytes)};
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      seen.insert(bulk_hash(bytes));
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    EXPECT_EQ(seen.size(), 8 * size + 1);
  }
}

/// Two words of one lane that change in the same way, in the sign bits above all, do not cancel.
TEST(BulkHash, PairsOfBitsCount) {
  auto bytes = random_bytes(320);
  std::set<std::uint64_t> seen{bulk_hash(bytes)};
  for (std::size_t bit = 0; bit < 64; ++bit) {
    auto const flip = std::byte{1} << (bit % 8);
    bytes[bit / 8] ^= flip;
    bytes[128 + bit / 8] ^= flip;
    seen.insert(bulk_hash(bytes));
    bytes[bit / 8] ^= flip;
    bytes[128 + bit / 8] ^= flip;
  }
  EXPECT_EQ(seen.size(), 65u);
}

TEST(BulkHash, OrderAndLengthCount) {
  auto bytes = random_bytes(256);
  auto const before = bulk_hash(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 64);
  EXPECT_NE(bulk_hash(bytes), before);
  std::set<std::uint64_t> seen;
  std::vector<std::byte> const zeros(130);
  for (std::size_t size = 0; size <= zeros.size(); ++size)
    seen.insert(bulk_hash(std::span(zeros).first(size)));
  EXPECT_EQ(seen.size(), zeros.size() + 1);
}

}  // namespace
}  // namespace stratagem
