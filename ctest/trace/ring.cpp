#include "trace/ring.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace stratagem::trace {
namespace {

TEST(Ring, KeepsOrderAcrossTheEnd) {
  Ring<int> ring(4);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3; ++i) ring.push(10 * round + i);
    EXPECT_EQ(ring.drain(), (std::vector<int>{10 * round, 10 * round + 1, 10 * round + 2}));
  }
  EXPECT_TRUE(ring.drain().empty());
  EXPECT_EQ(ring.dropped(), 0U);
}

TEST(Ring, DropsTheNewestWhenFull) {
  Ring<int> ring(2);
  for (int i = 0; i < 5; ++i) ring.push(i);
  EXPECT_EQ(ring.dropped(), 3U);
  EXPECT_EQ(ring.drain(), (std::vector<int>{0, 1}));
  ring.push(9);
  EXPECT_EQ(ring.drain(), std::vector<int>{9});
}

TEST(Ring, TwoThreadsLoseNothingUncounted) {
  constexpr int pushed = 200'000;
  Ring<int> ring(64);
  std::thread writer([&] {
    for (int i = 0; i < pushed; ++i) ring.push(i);
  });
  std::vector<int> seen;
  auto take = [&] {
    for (int value : ring.drain()) seen.push_back(value);
  };
  while (seen.size() + ring.dropped() < pushed) take();
  writer.join();
  take();
  EXPECT_EQ(seen.size() + ring.dropped(), static_cast<std::size_t>(pushed));
  for (std::size_t i = 1; i < seen.size(); ++i) ASSERT_LT(seen[i - 1], seen[i]);
}

}  // namespace
}  // namespace stratagem::trace
