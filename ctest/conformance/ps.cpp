#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "conformance/expected.hpp"
#include "conformance/one_process.hpp"

namespace stratagem::test {
namespace {

/// As many servers of `wanted` as leave a worker.
PsConfig fitted(PsConfig wanted) {
  wanted.servers = std::min(wanted.servers, world().size() - 1);
  return wanted;
}

struct Case {
  std::string model;
  PsConfig ps;
};

std::string name(testing::TestParamInfo<Case> const& info) {
  auto const& [model, ps] = info.param;
  return model + "_servers" + std::to_string(ps.servers) + "_chunk" +
         std::to_string(std::lround(ps.chunk_mb * 1024)) + "K" +
         (ps.server_ranks == ServerPlacement::spread ? "_spread" : "") +
         (ps.transport == PsConfig::Transport::rma ? "_rma" : "");
}

class Ps : public testing::TestWithParam<Case> {};

TEST_P(Ps, SyncEqualsTheEmulatorBitForBit) {
  Training const training{.model = GetParam().model, .strategy = fitted(GetParam().ps)};
  auto const own = train_here(training);
  if (world().rank() != 0) return;
  int const workers = world().size() - std::get<PsConfig>(training.strategy).servers;
  EXPECT_EQ(fingerprint(own), emulated(training, workers));
}

constexpr double kib = 1.0 / 1024;

constexpr auto rma = PsConfig::Transport::rma;

INSTANTIATE_TEST_SUITE_P(
    All, Ps,
    testing::Values(
        Case{"lenet", {.servers = 1}}, Case{"lenet", {.servers = 2, .chunk_mb = 0.05}},
        Case{"lenet", {.servers = 3, .chunk_mb = 4 * kib}},
        Case{"lenet",
             {.servers = 2, .server_ranks = ServerPlacement::spread, .chunk_mb = 16 * kib}},
        Case{"lenet", {.servers = 1, .transport = rma}},
        Case{"tiny_residual", {.servers = 2, .chunk_mb = 4 * kib, .transport = rma}},
        Case{"tiny_residual", {.servers = 1, .chunk_mb = 4 * kib}},
        Case{"tiny_odd", {.servers = 1, .chunk_mb = 4 * kib}},
        Case{"tiny_maps", {.servers = 1, .chunk_mb = kib}},
        Case{"tiny_exported", {.servers = 2, .chunk_mb = 4 * kib}}),
    name);

TEST(Ps, SyncEqualsTheEmulatorInBf16) {
  Training const training{.model = "tiny_residual",
                          .strategy = PsConfig{.chunk_mb = 4 * kib},
                          .precision = {.compute = Precision::bf16, .loss_scale = LossScale::none}};
  auto const own = train_here(training);
  if (world().rank() != 0) return;
  EXPECT_EQ(fingerprint(own), emulated(training, world().size() - 1));
}

/// What depends on the norm of the whole gradient, of which every server has a part.
TEST(Ps, SyncEqualsTheEmulatorUnderLossScalingAndClipping) {
  for (auto const& ps :
       {PsConfig{.servers = 3, .chunk_mb = 4 * kib, .micro_batches = 12},
        PsConfig{.servers = 2, .chunk_mb = 4 * kib, .transport = rma, .micro_batches = 12}}) {
    Training const training{.model = "tiny_residual",
                            .strategy = fitted(ps),
                            .optimizer = {.lr = 0.02,
                                          .weight_decay = 1e-3,
                                          .rule = SgdConfig{.nesterov = true},
                                          .clip_norm = 0.5},
                            .precision = scaled_bf16,
                            .steps = 8,
                            .global_batch = 144,
                            .counters = overflowing()};
    auto const own = train_here(training);
    if (world().rank() != 0) continue;
    EXPECT_GT(own.skipped, 0);
    EXPECT_LT(own.skipped, training.steps / 2);
    int const workers = world().size() - std::get<PsConfig>(training.strategy).servers;
    EXPECT_EQ(fingerprint(own), emulated(training, workers, {.micro_batches = ps.micro_batches}));
  }
}

TEST(Ps, SyncEqualsTheEmulatorUnderEveryOptimizer) {
  for (auto optimizer : all_optimizers()) {
    optimizer.weight_decay = 0.1;
    optimizer.decay = Decay::weights;
    Training const training{.model = "tiny_residual",
                            .strategy = fitted({.servers = 2, .chunk_mb = 4 * kib}),
                            .optimizer = optimizer};
    auto const own = train_here(training);
    if (world().rank() != 0) continue;
    int const workers = world().size() - std::get<PsConfig>(training.strategy).servers;
    EXPECT_EQ(fingerprint(own), emulated(training, workers));
  }
}

/// The baseline for look-ahead momentum.
TEST(Ps, SyncEqualsTheEmulatorUnderNesterov) {
  Training const training{
      .model = "tiny_residual",
      .strategy = fitted({.servers = 2, .chunk_mb = 4 * kib}),
      .optimizer = {.lr = 0.02, .weight_decay = 1e-3, .rule = SgdConfig{.nesterov = true}}};
  auto const own = train_here(training);
  if (world().rank() != 0) return;
  int const workers = world().size() - std::get<PsConfig>(training.strategy).servers;
  EXPECT_EQ(fingerprint(own), emulated(training, workers));
}

TEST(Ps, RankZeroCanBeAServer) {
  Training const training{
      .strategy =
          fitted({.servers = 2, .server_ranks = ServerPlacement::first, .chunk_mb = 16 * kib})};
  int const servers = std::get<PsConfig>(training.strategy).servers;
  auto const own = train_here(training);
  if (world().rank() != servers) return;  // the first worker
  EXPECT_EQ(fingerprint(own), emulated(training, world().size() - servers));
}

TEST(Ps, TheFasterTransportGivesTheSameBits) {
  Training const training{
      .strategy = PsConfig{.chunk_mb = 0.5, .transport = PsConfig::Transport::automatic},
      .steps = 5};
  auto const own = train_here(training);
  if (world().rank() != 0) return;
  EXPECT_EQ(fingerprint(own), emulated(training, world().size() - 1));
}

TEST(Ps, DelayedSyncEqualsItsSimulation) {
  for (int const servers : {1, 2}) {
    Training training{
        .model = "tiny_residual",
        .strategy = fitted({.servers = servers, .chunk_mb = 4 * kib, .mode = PsMode::delayed_sync}),
        .steps_per_round = 7};
    if (servers == 2) {
      training.precision = scaled_bf16;
      training.counters = overflowing();
    }
    auto const own = train_here(training);
    if (world().rank() != 0) continue;
    int const workers = world().size() - std::get<PsConfig>(training.strategy).servers;
    EXPECT_EQ(differences(own.parameters, simulate(training, workers).parameters),
              std::vector<std::string>());
  }
}

}  // namespace
}  // namespace stratagem::test
