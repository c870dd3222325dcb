#include "predict/room.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace stratagem {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;

TEST(Room, ReservesWhatTheGpuHoldsBesideTensors) {
  Room const room{.bytes = 24 * gib};
  EXPECT_TRUE(room.fits(23 * gib));
  EXPECT_FALSE(room.fits(23 * gib + 1));
  EXPECT_TRUE((Room{.bytes = 24 * gib, .reserve = 0}.fits(24 * gib)));
}

TEST(Room, SaysHowMuchIsToSpareOrMissing) {
  Room const room{.bytes = 20 * gib};
  EXPECT_EQ(room.verdict(10 * gib), "fits, 9.00 GiB spare");
  EXPECT_FALSE(room.tight(17 * gib));
  EXPECT_EQ(room.verdict(17 * gib + gib / 2), "tight, 1.50 GiB spare");
  EXPECT_EQ(room.verdict(19 * gib), "tight, 0 B spare");
  EXPECT_EQ(room.verdict(20 * gib), "lacks 1.00 GiB");
  EXPECT_EQ(room.json(20 * gib).at("spare_B"), -gib);
}

TEST(Room, FitsEverythingWhereItIsNotKnown) {
  EXPECT_TRUE(Room{}.fits(1000 * gib));
  EXPECT_FALSE(Room{}.tight(1000 * gib));
  EXPECT_EQ(Room{}.verdict(1), "-");
}

}  // namespace
}  // namespace stratagem
