#include <gtest/gtest.h>

#include "comm/nccl/nccl_world.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "conformance/expected.hpp"
#include "support/fakes/host_communicator.hpp"
#include "support/wrapped_world.hpp"

// Strategies over the NCCL communicator, on fakes: host memory takes the place of the device's.
namespace stratagem::test {
namespace {

using namespace std::chrono_literals;

void expect_equal_to_emulator(Training const& training, SerialConfig const& serial = {}) {
  std::string own;
  {
    auto const nccl = make_nccl_world(world(), {gpu::DeviceKind::cuda, 0}, nullptr, 60s);
    WrappedWorld host(
        *nccl, [](Communicator& group) { return std::make_unique<HostCommunicator>(group); });
    ASSERT_EQ(host.all().backend(), "nccl");
    own = fingerprint(train(training, host));
  }
  if (world().rank() == 0) {
    EXPECT_EQ(own, emulated(training, world().size(), serial));
  }
}

TEST(Nccl, DdpEqualsTheEmulator) {
  expect_equal_to_emulator(
      {.model = "tiny_residual", .strategy = DdpConfig{.bucket_mb = 1.0 / 1024}});
}

/// The fake graph runs what it keeps with what was known in the step in which it was made.
TEST(Nccl, DdpKeptAsAGraphEqualsTheEmulator) {
  for (auto const* model : {"lenet", "tiny_residual", "tiny_vit"})
    for (int const micro_batches : {1, 2})
      expect_equal_to_emulator(
          {.model = model,
           .strategy = DdpConfig{.bucket_mb = 4.0 / 1024, .micro_batches = micro_batches},
           .graph = true},
          {.micro_batches = micro_batches});
}

/// With the scale a new graph is made; some steps are skipped.
TEST(Nccl, ScaledDdpKeptAsAGraphEqualsTheEmulator) {
  expect_equal_to_emulator({.model = "tiny_residual",
                            .strategy = DdpConfig{.bucket_mb = 1.0 / 1024},
                            .optimizer = {.lr = 0.02, .clip_norm = 0.5},
                            .precision = scaled_bf16,
                            .counters = overflowing(),
                            .graph = true});
}

/// A graph begins and ends with all units given up.
TEST(Nccl, FsdpKeptAsAGraphEqualsTheEmulator) {
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
    for (auto const* model : {"tiny_residual", "tiny_gpt"}) {
      Training const training{
          .model = model,
          .strategy =
              FsdpConfig{.shard = shard, .unit_mb = 1.0 / 1024, .prefetch = 1, .poison = true},
          .compare_every = 3,
          .graph = true};
      expect_equal_to_emulator(training);
    }
}

/// Of a step, the host waits for what comes back in the status, and for no collective: it
/// could submit the whole step before the device has begun.
TEST(Nccl, StepsWaitForNoCollectiveOnTheHost) {
  std::vector<StrategyConfig> const strategies{
      DdpConfig{.bucket_mb = 1.0 / 1024, .micro_batches = 2},
      DdpConfig{.bucket_mb = 1.0 / 1024, .overlap = false},
      FsdpConfig{.shard = Shard::optimizer, .unit_mb = 1.0 / 1024},
      FsdpConfig{.shard = Shard::full, .unit_mb = 1.0 / 1024, .prefetch = 1, .poison = true}};
  for (auto const& strategy : strategies)
    for (bool const graph : {false, true}) {
      auto const nccl = make_nccl_world(world(), {gpu::DeviceKind::cuda, 0}, nullptr, 60s);
      HostCommunicator communicator(nccl->all());
      int before = 0, waits = 0;
      train({.model = "tiny_residual",
             .strategy = strategy,
             .before = [&](Participant&) { before = communicator.waits_on_host(); },
             .after = [&](Participant&, Communicator&) { waits = communicator.waits_on_host(); },
             .graph = graph},
            communicator);
      EXPECT_EQ(waits - before, 0);
    }
}

TEST(Nccl, TheEmulatorKeptAsAGraphEqualsItself) {
  for (auto const* model : {"lenet", "tiny_odd", "tiny_gpt"})
    for (auto const accumulate : {Accumulate::unsharded, Accumulate::sharded}) {
      SerialConfig const serial{.emulate_ranks = 2, .micro_batches = 3, .accumulate = accumulate};
      Training training{.model = model, .strategy = serial, .graph = true};
      SerialCommunicator alone({});
      auto const own = train(training, alone);
      EXPECT_EQ(fingerprint(own), emulated(training, 2, serial));
    }
}

TEST(Nccl, FsdpEqualsTheEmulator) {
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
    for (int const prefetch : {0, 1, 2})
      expect_equal_to_emulator(
          {.model = "tiny_residual",
           .strategy = FsdpConfig{
               .shard = shard, .unit_mb = 1.0 / 1024, .prefetch = prefetch, .poison = true}});
}

/// Each rank is a replica: it sums over the others alone, in a group that is not of all.
TEST(Nccl, ReplicasEqualTheEmulatorInGroups) {
  for (auto const shard : {Shard::optimizer, Shard::full})
    for (bool const graph : {false, true})
      expect_equal_to_emulator(
          {.model = "tiny_residual",
           .strategy =
               FsdpConfig{.shard = shard, .replicas = world().size(), .unit_mb = 1.0 / 1024},
           .graph = graph},
          {.groups = world().size()});
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
