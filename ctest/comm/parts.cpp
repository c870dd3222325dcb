#include "comm/mpi/parts.hpp"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

std::vector<std::size_t> lengths(std::size_t bytes, std::size_t limit) {
  std::array<std::byte, 32> memory{};
  std::vector<std::size_t> lengths;
  std::byte* next = memory.data();
  for (auto const part : parts_of(std::span(memory).first(bytes), limit)) {
    EXPECT_EQ(part.data(), next) << "parts follow one another";
    next += part.size();
    lengths.push_back(part.size());
  }
  EXPECT_EQ(next, memory.data() + bytes);
  return lengths;
}

TEST(Parts, CoverTheWholeInOrder) {
  using Lengths = std::vector<std::size_t>;
  EXPECT_EQ(lengths(0, 8), Lengths{0});
  EXPECT_EQ(lengths(7, 8), Lengths{7});
  EXPECT_EQ(lengths(8, 8), Lengths{8});
  EXPECT_EQ(lengths(9, 8), (Lengths{8, 1}));
  EXPECT_EQ(lengths(24, 8), (Lengths{8, 8, 8}));
}

}  // namespace
}  // namespace stratagem
