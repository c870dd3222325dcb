#include <gtest/gtest.h>

#include "comm/mpi/mpi_world.hpp"
#include "conformance/expected.hpp"
#include "strategy/ps/server_ranks.hpp"
#include "support/fakes/host_communicator.hpp"

// Workers of a parameter server on a device, on fakes: what they push and pull goes through pinned
// copies. Servers are on the host.
namespace stratagem::test {
namespace {

using namespace std::chrono_literals;
using Transport = PsConfig::Transport;

constexpr double kib = 1.0 / 1024;

Trained train_on_devices(Training const& training) {
  auto const& ps = std::get<PsConfig>(training.strategy);
  bool const serves = place_servers(ps, world().size()).serves(world().rank());
  auto const kind = serves ? gpu::DeviceKind::cpu : gpu::DeviceKind::cuda;
  MpiWorld staged(world(), gpu::Device{kind, 0}, nullptr, 60s);
  HostCommunicator communicator(staged.all());
  return train(training, communicator);
}

TEST(PsStaged, SyncEqualsTheEmulator) {
  for (auto const transport : {Transport::two_sided, Transport::rma, Transport::automatic}) {
    Training const training{.model = "tiny_residual",
                            .strategy = PsConfig{.chunk_mb = 4 * kib, .transport = transport}};
    auto const own = train_on_devices(training);
    if (world().rank() == 0) {
      EXPECT_EQ(fingerprint(own), emulated(training, world().size() - 1));
    }
  }
}

TEST(PsStaged, SyncEqualsTheEmulatorUnderLossScalingAndClipping) {
  Training const training{
      .model = "tiny_residual",
      .strategy = PsConfig{.chunk_mb = 4 * kib},
      .optimizer = {.lr = 0.02, .clip_norm = 0.5},
      .precision = {.compute = Precision::bf16, .loss_scale = LossScale::dynamic}};
  auto const own = train_on_devices(training);
  if (world().rank() == 0) {
    EXPECT_EQ(fingerprint(own), emulated(training, world().size() - 1));
  }
}

TEST(PsStaged, AsyncOfOneWorkerIsSerial) {
  for (auto const transport : {Transport::two_sided, Transport::rma}) {
    Training const training{.model = "lenet",
                            .strategy = PsConfig{.servers = world().size() - 1,
                                                 .chunk_mb = 16 * kib,
                                                 .transport = transport,
                                                 .mode = PsMode::async},
                            .steps = 50};
    auto const own = train_on_devices(training);
    if (world().rank() == 0) {
      EXPECT_EQ(fingerprint(own), emulated(training, 1));
    }
  }
}

}  // namespace
}  // namespace stratagem::test
