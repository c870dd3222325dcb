#include <algorithm>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/mpi/mpi_world.hpp"
#include "comm/nccl/nccl_world.hpp"
#include "comm/serial/serial_world.hpp"
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
    MpiWorld of_staged(world(), training.device, nullptr, 60s);
    auto& staged = of_staged.all();
    EXPECT_EQ(fingerprint(train(training, staged)), expected);
    if (what_nccl_lacks() || world().size() > 2) return;  // of three terms it adds in its own order
    auto const nccl = make_nccl_world(world(), training.device, nullptr, 60s);
    EXPECT_EQ(fingerprint(train(training, *nccl)), expected);
  }
};

TEST_F(OnGpu, DdpEqualsTheEmulator) {
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd"})
    for (bool const overlap : {true, false})
      expect_equal_to_emulator(
          {.model = model, .strategy = DdpConfig{.bucket_mb = 4 * kib, .overlap = overlap}});
}

/// Of one process: what a graph of all passes makes has the bits of the same passes, one by one.
TEST_F(OnGpu, StepsKeptAsAGraphHaveTheSameBits) {
  if (world().size() > 1) return;
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd", "tiny_vit", "tiny_gpt"})
    for (auto const& precision :
         {PrecisionConfig{}, PrecisionConfig{.compute = Precision::bf16}, scaled_bf16,
          PrecisionConfig{.compute = Precision::fp16, .loss_scale = LossScale::dynamic}})
      for (auto const& strategy : {StrategyConfig(SerialConfig{.micro_batches = 2}),
                                   StrategyConfig(SerialConfig{.emulate_ranks = 2}),
                                   StrategyConfig(DdpConfig{.bucket_mb = 4 * kib}),
                                   StrategyConfig(FsdpConfig{.unit_mb = 4 * kib})}) {
        Training training{
            .model = model,
            .strategy = strategy,
            .device = *own_gpu(),
            .optimizer = {.lr = 0.02, .weight_decay = 1e-3, .schedule = ScheduleKind::cosine},
            .precision = precision,
            .compare_every = 7};
        SerialCommunicator alone(training.device);
        auto const anew = train(training, alone);
        training.graph = true;
        auto const kept = train(training, alone);
        EXPECT_EQ(fingerprint(kept), fingerprint(anew)) << model;
        EXPECT_EQ(kept.losses, anew.losses) << model;
      }
}

/// Sums over ranks are parts of the graph.
TEST_F(OnGpu, SumsKeptInAGraphEqualTheEmulators) {
  if (what_nccl_lacks() || world().size() > 2) return;
  for (auto const* model : {"tiny_residual", "tiny_vit"})
    for (bool const overlap : {true, false}) {
      Training training{.model = model,
                        .strategy = DdpConfig{.bucket_mb = 4 * kib, .overlap = overlap},
                        .device = *own_gpu(),
                        .graph = true};
      auto const expected = emulated(training, world().size());
      auto const nccl = make_nccl_world(world(), training.device, nullptr, 60s);
      EXPECT_EQ(fingerprint(train(training, *nccl)), expected) << model;
    }
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full}) {
    Training training{
        .model = "tiny_residual",
        .strategy = FsdpConfig{.shard = shard, .unit_mb = 4 * kib, .prefetch = 1, .poison = true},
        .device = *own_gpu(),
        .compare_every = 6,
        .graph = true};
    auto const expected = emulated(training, world().size());
    auto const nccl = make_nccl_world(world(), training.device, nullptr, 60s);
    EXPECT_EQ(fingerprint(train(training, *nccl)), expected);
  }
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
  for (auto const& config :
       {StrategyConfig(SerialConfig{}), StrategyConfig(DdpConfig{}), StrategyConfig(FsdpConfig{})})
    for (bool const graph : {false, true}) {
      bool const alone = std::holds_alternative<SerialConfig>(config);
      if ((alone || graph) && ranks > 1) continue;
      Training const training{.strategy = config, .device = device, .graph = graph};
      auto const model = test_model(training.model);
      MpiWorld staged(world(), device, nullptr, 60s);
      SerialWorld without_others(device);
      auto& all = ranks > 1 ? static_cast<World&>(staged) : without_others;
      auto& communicator = all.all();
      trace::Recorder recorder(device, 0);
      auto const member = make_member(config, parts_of(training, model, all, recorder));
      auto const step = [&](std::int64_t number, double lr) {
        auto const first_slot = training.global_batch / ranks * rank;
        member.strategy->step(training_batch(training, number, first_slot, ranks), {.lr = lr});
      };
      auto const state = [&] {
        auto const held = member.strategy->state();
        return digest_of(gather(held, State::parameters, model, all_tensors, communicator)) +
               digest_of(gather(held, "momentum", model, all_tensors, communicator));
      };
      std::int64_t number = 0;
      while (number < 5) step(number++, 0.01);  // of which the last ones are kept as a graph
      auto const at_first = state();
      step(number++, 1e30);
      auto const before = state();
      EXPECT_NE(before, at_first);
      try {
        step(number, 1e30);
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
    MpiWorld of_communicator(world(), training.device, nullptr, 60s);
    auto& communicator = of_communicator.all();
    auto const trained = train(training, communicator);
    if (world().rank() > 0) continue;
    auto const expected = distance(on_gpu.parameters, on_host.parameters);
    EXPECT_LT(expected, 1e-3);
    EXPECT_LT(distance(trained.parameters, on_host.parameters), 4 * expected + 1e-6);
  }
}

}  // namespace
}  // namespace stratagem::test
