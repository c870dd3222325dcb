#include "gpu/marks.hpp"

#include <gtest/gtest.h>

#include "base/clock.hpp"

namespace stratagem::gpu {
namespace {

TEST(Marks, AreTimesOfTheMonotonicClockInOrder) {
  Marks marks(Device{}, 3);
  auto const before = monotonic_ns();
  EXPECT_EQ(marks.add(), 0);
  EXPECT_EQ(marks.add(), 1);
  marks.resolve();
  EXPECT_LE(before, marks.ns(0));
  EXPECT_LE(marks.ns(0), marks.ns(1));
  EXPECT_LE(marks.ns(1), monotonic_ns());
}

TEST(Marks, WithoutRoomAreRefusedUntilCleared) {
  Marks marks(Device{}, 2);
  marks.add();
  marks.add();
  EXPECT_EQ(marks.add(), -1);
  marks.clear();
  EXPECT_EQ(marks.add(), 0);
}

}  // namespace
}  // namespace stratagem::gpu
