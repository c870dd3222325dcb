#include "data/hdf5/piece_cache.hpp"

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(PieceCache, KeepsThePiecesThatWereUsedLast) {
  PieceCache cache(2);
  int unpacked = 0;
  auto const get = [&](std::int64_t number) {
    auto const content = cache.get(number, [&] {
      ++unpacked;
      return std::vector(3, static_cast<std::byte>(number));
    });
    EXPECT_EQ(*content, std::vector(3, static_cast<std::byte>(number)));
    return unpacked;
  };
  EXPECT_EQ(get(1), 1);
  EXPECT_EQ(get(2), 2);
  EXPECT_EQ(get(1), 2);
  EXPECT_EQ(get(3), 3) << "takes the place of 2";
  EXPECT_EQ(get(1), 3);
  EXPECT_EQ(get(2), 4);
}

TEST(PieceCache, ContentOutlivesItsPlace) {
  PieceCache cache(1);
  auto const first = cache.get(1, [] { return std::vector(1, std::byte{7}); });
  cache.get(2, [] { return std::vector(1, std::byte{8}); });
  EXPECT_EQ(first->front(), std::byte{7});
}

TEST(PieceCache, WhatFailsIsTriedAgain) {
  PieceCache cache(2);
  EXPECT_THROW(cache.get(1, []() -> std::vector<std::byte> { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(cache.get(1, [] { return std::vector<std::byte>(5); })->size(), 5u);
}

}  // namespace
}  // namespace stratagem
