#include "trace/exposed/intervals.hpp"

#include <gtest/gtest.h>

namespace stratagem::trace {
namespace {

TEST(Intervals, AreUnitedWhereTheyMeet) {
  EXPECT_EQ(united({{5, 9}, {1, 3}, {3, 4}, {6, 7}, {8, 12}, {20, 20}, {30, 25}}),
            (Intervals{{1, 4}, {5, 12}}));
  EXPECT_EQ(united({}), Intervals{});
}

TEST(Intervals, HaveInCommonWhatIsInBoth) {
  Intervals const a{{0, 10}, {20, 30}, {40, 50}}, b{{5, 22}, {25, 45}};
  EXPECT_EQ(common(a, b), (Intervals{{5, 10}, {20, 22}, {25, 30}, {40, 45}}));
  EXPECT_EQ(common(b, a), common(a, b));
  EXPECT_EQ(common(a, {}), Intervals{});
  EXPECT_EQ(length(common(a, b)), 17);
  EXPECT_EQ(length({}), 0);
}

}  // namespace
}  // namespace stratagem::trace
