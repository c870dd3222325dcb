#include <gtest/gtest.h>

#include "comm/nccl/nccl_communicator.hpp"
#include "conformance/expected.hpp"
#include "support/fakes/host_communicator.hpp"

// Strategies over the NCCL communicator, on fakes: host memory takes the place of the device's.
namespace stratagem::test {
namespace {

using namespace std::chrono_literals;

void expect_equal_to_emulator(Training const& training) {
  std::string own;
  {
    HostCommunicator communicator(
        make_nccl_communicator(world(), {gpu::DeviceKind::cuda, 0}, nullptr, 60s));
    ASSERT_EQ(communicator.backend(), "nccl");
    own = fingerprint(train(training, communicator));
  }
  if (world().rank() == 0) {
    EXPECT_EQ(own, emulated(training, world().size()));
  }
}

TEST(Nccl, DdpEqualsTheEmulator) {
  expect_equal_to_emulator(
      {.model = "tiny_residual", .strategy = DdpConfig{.bucket_mb = 1.0 / 1024}});
}

TEST(Nccl, FsdpEqualsTheEmulator) {
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
    for (int const prefetch : {0, 1, 2})
      expect_equal_to_emulator(
          {.model = "tiny_residual",
           .strategy = FsdpConfig{
               .shard = shard, .unit_mb = 1.0 / 1024, .prefetch = prefetch, .poison = true}});
}

TEST(Nccl, FsdpClipsAndScalesAsTheEmulator) {
  expect_equal_to_emulator({.model = "tiny_residual",
                            .strategy = FsdpConfig{.unit_mb = 1.0 / 1024, .poison = true},
                            .optimizer = {.lr = 0.02, .weight_decay = 1e-3, .clip_norm = 0.5}});
  expect_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy = FsdpConfig{.unit_mb = 1.0 / 1024, .poison = true},
       .precision = {.compute = Precision::bf16, .loss_scale = LossScale::dynamic}});
}

}  // namespace
}  // namespace stratagem::test
