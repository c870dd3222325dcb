#include <algorithm>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/mpi/mpi_communicator.hpp"
#include "comm/nccl/nccl_communicator.hpp"
#include "conformance/expected.hpp"
#include "params/server_plan.hpp"
#include "support/gpus.hpp"

// Strategies on real GPUs, with kernels that give the same bits each time.
namespace stratagem::test {
namespace {

using namespace std::chrono_literals;

constexpr double kib = 1.0 / 1024;

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!own_gpu()) GTEST_SKIP() << "needs a GPU";
    auto& context = at::globalContext();
    context.setDeterministicCuDNN(true);
    context.setAllowTF32CuDNN(false);
  }

  /// Over pinned copies and MPI, and over NCCL where it can join these ranks.
  static void expect_equal_to_emulator(Training training, SerialConfig const& serial = {}) {
    training.device = *own_gpu();
    auto const expected = emulated(training, world().size(), serial);
    MpiCommunicator staged(world(), training.device, nullptr, 60s);
    EXPECT_EQ(fingerprint(train(training, staged)), expected);
    if (what_nccl_lacks() || world().size() > 2) return;  // of three terms it adds in its own order
    auto const nccl = make_nccl_communicator(world(), training.device, nullptr, 60s);
    EXPECT_EQ(fingerprint(train(training, *nccl)), expected);
  }
};

TEST_F(OnGpu, DdpEqualsTheEmulator) {
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd"})
    for (bool const overlap : {true, false})
      expect_equal_to_emulator(
          {.model = model, .strategy = DdpConfig{.bucket_mb = 4 * kib, .overlap = overlap}});
}

TEST_F(OnGpu, FsdpEqualsTheEmulator) {
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
    for (int const prefetch : {0, 2})
      expect_equal_to_emulator(
          {.model = "tiny_residual",
           .strategy = FsdpConfig{
               .shard = shard, .unit_mb = 4 * kib, .prefetch = prefetch, .poison = true}});
}

TEST_F(OnGpu, ScaledGradientsEqualTheEmulators) {
  for (auto const compute : {Precision::bf16, Precision::fp16}) {
    PrecisionConfig const precision{.compute = compute, .loss_scale = LossScale::dynamic};
    expect_equal_to_emulator({.model = "tiny_residual",
                              .strategy = DdpConfig{.bucket_mb = 4 * kib, .micro_batches = 3},
                              .precision = precision},
                             {.micro_batches = 3});
    expect_equal_to_emulator({.model = "lenet",
                              .strategy = FsdpConfig{.unit_mb = 16 * kib, .poison = true},
                              .precision = precision});
  }
}

/// The host learns of it when the update is under way: the device refuses it.
TEST_F(OnGpu, ALossThatIsNotFiniteUpdatesNothing) {
  auto const device = *own_gpu();
  auto const rank = world().rank(), ranks = world().size();
  for (auto const& config : {StrategyConfig(DdpConfig{}), StrategyConfig(FsdpConfig{})}) {
    Training const training{
        .strategy = config, .device = device, .optimizer = {.lr = 1e30}, .recompute = {}};
    auto const model = test_model(training.model);
    MpiCommunicator communicator(world(), device, nullptr, 60s);
    trace::Recorder recorder(device, 0);
    auto const member = make_member(config, parts_of(training, model, communicator, recorder));
    auto const step = [&](std::int64_t number) {
      auto const first_slot = training.global_batch / ranks * rank;
      member.strategy->step(training_batch(training, number, first_slot, ranks), {.lr = 1e30});
    };
    auto const state = [&] {
      auto const held = member.strategy->state();
      return digest_of(gather(held, State::parameters, model, all_tensors, communicator)) +
             digest_of(gather(held, "momentum", model, all_tensors, communicator));
    };
    auto const at_first = state();
    step(0);
    auto const before = state();
    EXPECT_NE(before, at_first);
    try {
      step(1);
      FAIL() << "no error on rank " << rank;
    } catch (AgreedError const& error) {
      EXPECT_EQ(error.code(), ExitCode::non_finite);
      EXPECT_NE(std::string(error.what()).find("output of block "), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(state(), before);
  }
}

/// Largest relative distance of a tensor of one from the other's.
double distance(NamedTensors const& ours, NamedTensors const& theirs) {
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    auto const reference = theirs[i].second.cpu();
    auto const error = (ours[i].second.cpu() - reference).norm() / reference.norm();
    largest = std::max(largest, error.item<double>());
  }
  return largest;
}

/// Servers update on the host, whose products and sums are rounded one by one: as close to what all
/// on the host makes as all on the GPU is.
TEST_F(OnGpu, WorkersOfAServerAreAsCloseAsTheGpuIs) {
  if (world().size() < 2) return;
  bool const serves = world().rank() == world().size() - 1;
  for (auto const transport : {PsConfig::Transport::two_sided, PsConfig::Transport::rma}) {
    Training training{.model = "lenet",
                      .strategy = PsConfig{.chunk_mb = 64 * kib, .transport = transport},
                      .steps = 6};
    auto const on_host = train_emulated(training, world().size() - 1);
    training.device = *own_gpu();
    auto const on_gpu = train_emulated(training, world().size() - 1);
    if (serves) training.device = {};
    MpiCommunicator communicator(world(), training.device, nullptr, 60s);
    auto const trained = train(training, communicator);
    if (world().rank() > 0) continue;
    auto const expected = distance(on_gpu.parameters, on_host.parameters);
    EXPECT_LT(expected, 1e-3);
    EXPECT_LT(distance(trained.parameters, on_host.parameters), 4 * expected + 1e-6);
  }
}

}  // namespace
}  // namespace stratagem::test
