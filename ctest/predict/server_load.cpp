#include "predict/server_load.hpp"

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(ServerLoad, TellsHowManyServersAreEnough) {
  auto const light = predict_load(0.1, 0.005, 4, 1);
  EXPECT_NEAR(light.utilisation, 0.02 / 0.105, 1e-12);
  EXPECT_EQ(light.servers_needed, 1);
  auto const heavy = predict_load(0.1, 0.05, 8, 2);
  EXPECT_GT(heavy.utilisation, 1);
  int const enough = heavy.servers_needed;
  EXPECT_LE(predict_load(0.1, 0.1 / enough, 8, enough).utilisation, most_utilisation);
  EXPECT_GT(predict_load(0.1, 0.1 / (enough - 1), 8, enough - 1).utilisation, most_utilisation);
}

}  // namespace
}  // namespace stratagem
