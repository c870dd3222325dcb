#include "comm/process_info.hpp"

#include <gtest/gtest.h>

#include "support/world.hpp"

namespace stratagem {
namespace {

TEST(ProcessInfo, KnowsItsPlaceOnOneNode) {
  auto const& world = test::world();
  auto const info = discover_process(world);
  EXPECT_EQ(info.rank, world.rank());
  EXPECT_EQ(info.size, world.size());
  EXPECT_EQ(info.node_rank, world.rank());
  EXPECT_EQ(info.node_size, world.size());
  EXPECT_EQ(info.nodes, 1);
  EXPECT_FALSE(info.host.empty());
  EXPECT_FALSE(info.cores.empty());
}

TEST(ProcessInfo, WhoComputesNothingHasNoGpu) {
  auto const info = discover_process(test::world(), test::world().rank() > 0);
  if (test::world().rank() == 0) {
    EXPECT_EQ(info.device.kind, gpu::DeviceKind::cpu);
  }
  auto const gpus = gpu::availability().count;
  if (gpus > 0 && test::world().rank() > 0) {
    EXPECT_EQ(info.device.index, (test::world().rank() - 1) % gpus);
  }
}

TEST(ProcessInfo, AloneIsRankZeroOfOne) {
  auto const info = discover_process();
  EXPECT_EQ(info.rank, 0);
  EXPECT_EQ(info.size, 1);
  EXPECT_EQ(info.node_size, 1);
  EXPECT_FALSE(info.shares_device);
}

}  // namespace
}  // namespace stratagem
