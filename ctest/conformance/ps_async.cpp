#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <ranges>

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "conformance/expected.hpp"
#include "conformance/one_process.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/state/model_layout.hpp"
#include "support/scratch.hpp"
#include "trace/rank_trace.hpp"
#include "trace/schema.hpp"
#include "trace/validate.hpp"

namespace stratagem::test {
namespace {

using Pulls = ServerPolicy::Pulls;

constexpr double kib = 1.0 / 1024;

TEST(PsAsync, OfOneWorkerIsSerial) {
  for (auto const pulls : {Pulls::consistent, Pulls::chunkwise}) {
    Training const training{.model = "lenet",
                            .strategy = PsConfig{.servers = world().size() - 1,
                                                 .chunk_mb = 16 * kib,
                                                 .mode = PsMode::async,
                                                 .pulls = pulls},
                            .steps = 200};
    auto const own = train_here(training);
    if (world().rank() == 0) {
      EXPECT_EQ(fingerprint(own), emulated(training, 1));
    }
  }
}

TEST(PsAsync, OfOneWorkerIsSerialUnderLossScalingAndClipping) {
  Training const training{.model = "lenet",
                          .strategy = PsConfig{.servers = world().size() - 1,
                                               .chunk_mb = 16 * kib,
                                               .mode = PsMode::async,
                                               .micro_batches = 12},
                          .optimizer = {.lr = 0.02, .clip_norm = 0.5},
                          .precision = scaled_bf16,
                          .steps = 20,
                          .counters = overflowing()};
  auto const own = train_here(training);
  if (world().rank() != 0) return;
  EXPECT_GT(own.skipped, 0);
  EXPECT_LT(own.skipped, training.steps / 2);
  EXPECT_EQ(fingerprint(own), emulated(training, 1, {.micro_batches = 12}));
}

/// Trains, and repeats the training in one process from what the servers recorded.
void expect_replays_bit_for_bit(
    Training const& training, std::function<void(trace::RankTrace const&)> const& of_server = {}) {
  std::string folder;
  std::optional<Scratch> scratch;
  if (world().rank() == 0) folder = scratch.emplace().path();
  world().broadcast(folder, 0);
  auto recorded = training;
  recorded.trace_folder = folder;
  auto const own = train_here(recorded);
  world().barrier();
  if (world().rank() != 0) return;
  EXPECT_EQ(differences(own.parameters, replay(training, world().size(), folder)),
            std::vector<std::string>());
  int const servers = std::get<PsConfig>(training.strategy).servers;
  for (int rank = world().size() - servers; of_server && rank < world().size(); ++rank)
    of_server(trace::read_rank_trace(trace_of(folder, rank)));
}

TEST(PsAsync, EveryOptimizerIsSerialForOneWorkerAndReplaysForMore) {
  for (auto const& optimizer : all_optimizers()) {
    SCOPED_TRACE(name_of(optimizer));
    Training training{
        .model = "lenet",
        .strategy =
            PsConfig{.servers = world().size() - 1, .chunk_mb = 64 * kib, .mode = PsMode::async},
        .optimizer = optimizer,
        .steps = 10};
    auto const own = train_here(training);
    if (world().rank() == 0) {
      EXPECT_EQ(fingerprint(own), emulated(training, 1));
    }
    training.model = "tiny_residual";
    training.steps_per_round = 4;
    training.steps = 7;
    for (auto const mode : {PsMode::async, PsMode::softsync}) {
      training.strategy = PsConfig{.chunk_mb = 4 * kib, .mode = mode};
      expect_replays_bit_for_bit(training);
    }
  }
}

/// The rest of these traces is not written.
void expect_sound_updates(trace::RankTrace const& server) {
  for (auto const& problem : trace::problems_of(server))
    EXPECT_EQ(problem.find("/ps"), std::string::npos) << problem;
}

/// Pushes of worker 0 overflow at first, and nobody else's.
TEST(PsAsync, WhoseGradientsOverflowDropsItsPushOnEveryServer) {
  auto counters = std::map<std::string, double>{{"loss_scale", 65536},
                                                {"loss_scale_good_steps", 0},
                                                {"loss_scale/0", std::ldexp(1, 127)},
                                                {"loss_scale_good_steps/0", 0}};
  for (auto ps :
       {PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::dana},
        PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::softsync, .dc_lambda = 2, .dc_decay = 0.9}}) {
    ps.servers = std::min(ps.servers, world().size() - 1);
    ps.micro_batches = 12;
    Training const training{.model = "tiny_residual",
                            .strategy = ps,
                            .optimizer = {.lr = 0.02, .clip_norm = 0.5},
                            .precision = scaled_bf16,
                            .steps = 7,
                            .global_batch = 144,
                            .steps_per_round = 4,
                            .counters = counters};
    expect_replays_bit_for_bit(training, [&](trace::RankTrace const& server) {
      expect_sound_updates(server);
      auto const& updates = server.table(trace::ps_table());
      std::int64_t overflowed = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(updates.rows); ++i) {
        if (updates.integers("overflowed")[i] == 0) continue;
        ++overflowed;
        EXPECT_EQ(updates.integers("worker")[i], 0);
        EXPECT_EQ(updates.integers("dropped")[i], 1);
      }
      EXPECT_GT(overflowed, 0);
      EXPECT_EQ(updates.reals("loss_scale")[0] > 65536, updates.integers("worker")[0] == 0);
    });
  }
}

/// A row of the trace for each chunk of each push, with versions of its own.
TEST(PsAsync, ChunksHaveVersionsOfTheirOwn) {
  auto const ps = PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::async, .pulls = Pulls::chunkwise};
  Training const training{.model = "tiny_residual", .strategy = ps, .steps = 6};
  auto const layout = make_layout(test_model(training.model));
  auto const chunks = plan_ps(ps, layout, world().size(), sizeof(float)).servers.chunks.size();
  ASSERT_GT(chunks, 2U);
  expect_replays_bit_for_bit(training, [&](trace::RankTrace const& server) {
    expect_sound_updates(server);
    auto const& updates = server.table(trace::ps_table());
    auto const pushes = training.steps * (world().size() - 1);
    ASSERT_EQ(updates.rows, pushes * static_cast<std::int64_t>(chunks));
    std::map<std::int64_t, std::int64_t> versions;
    for (std::size_t i = 0; i < static_cast<std::size_t>(updates.rows); ++i)
      EXPECT_EQ(updates.integers("applied_version")[i], ++versions[updates.integers("chunk")[i]]);
    EXPECT_EQ(versions.size(), chunks);
  });
}

class PsAsync : public testing::TestWithParam<PsConfig> {};

TEST_P(PsAsync, ReplaysBitForBit) {
  auto ps = GetParam();
  ps.servers = std::min(ps.servers, world().size() - 1);
  expect_replays_bit_for_bit(
      {.model = "tiny_residual", .strategy = ps, .steps = 15, .steps_per_round = 6});
}

/// Gradients that workers code, drop in part, clip and apply to what they have cached.
TEST(PsAsync, CodedGradientsReplayBitForBit) {
  Compression const code{Code::int4, Rounding::stochastic, true};
  PsConfig const all[]{
      {.servers = 2, .mode = PsMode::async, .compression = code},
      {.servers = 2, .mode = PsMode::dana, .compression = {Code::sign, Rounding::nearest, true}},
      {.transport = PsConfig::Transport::rma, .mode = PsMode::dc_adaptive, .compression = code},
      {.mode = PsMode::modified, .compression = {Code::bf16}, .warm_start = 4},
      {.mode = PsMode::lag_cap, .compression = code, .lag_cap = 1},
      {.servers = 2, .mode = PsMode::gap_aware, .compression = code, .pulls = Pulls::chunkwise},
      {.mode = PsMode::softsync, .compression = {Code::ternary, Rounding::stochastic}, .count = 2}};
  for (auto ps : all)
    for (double const clip_norm : {0.0, 0.5}) {
      SCOPED_TRACE(str("mode ", static_cast<int>(ps.mode), ", clip_norm ", clip_norm));
      ps.servers = std::min(ps.servers, world().size() - 1);
      ps.chunk_mb = 4 * kib;
      expect_replays_bit_for_bit({.model = "tiny_residual",
                                  .strategy = ps,
                                  .optimizer = {.lr = 0.02, .clip_norm = clip_norm},
                                  .steps = 9,
                                  .steps_per_round = 5});
    }
}

/// What a worker computes with is what it pulled and its own updates.
TEST(PsAsync, CachedReadsReplayBitForBit) {
  PsConfig const ps{.servers = std::min(2, world().size() - 1),
                    .chunk_mb = 4 * kib,
                    .mode = PsMode::ssp,
                    .staleness = 3,
                    .cached_reads = true,
                    .micro_batches = 12};
  Training training{.model = "tiny_residual",
                    .strategy = ps,
                    .optimizer = {.lr = 0.1,
                                  .weight_decay = 1e-3,
                                  .decay = Decay::weights,
                                  .rule = SgdConfig{.momentum = 0},
                                  .clip_norm = 0.5},
                    .steps = 15,
                    .global_batch = 144,
                    .steps_per_round = 6};
  expect_replays_bit_for_bit(training, [&](trace::RankTrace const& server) {
    expect_sound_updates(server);
    auto const& pulled = server.table(trace::ps_table()).integers("pulled");
    auto const pulls = std::ranges::count(pulled, 1);
    EXPECT_GT(pulls, 0);
    EXPECT_LT(pulls, static_cast<std::int64_t>(pulled.size()));
  });
  auto coded = training;
  std::get<PsConfig>(coded.strategy).compression = {Code::int8, Rounding::stochastic, true};
  expect_replays_bit_for_bit(coded);
  training.precision = scaled_bf16;
  training.counters = overflowing();
  expect_replays_bit_for_bit(training);
}

TEST(PsAsync, OneWorkerWithCachedReadsIsSerial) {
  Training const training{.model = "lenet",
                          .strategy = PsConfig{.servers = world().size() - 1,
                                               .chunk_mb = 16 * kib,
                                               .mode = PsMode::ssp,
                                               .staleness = 7,
                                               .cached_reads = true},
                          .optimizer = {.lr = 0.05, .rule = SgdConfig{.momentum = 0}},
                          .steps = 40};
  auto const own = train_here(training);
  if (world().rank() != 0) return;
  EXPECT_EQ(fingerprint(own), emulated(training, 1));
}

TEST(PsAsync, BackupReplaysBitForBit) {
  if (world().size() < 3) return;  // nobody could be spared
  expect_replays_bit_for_bit({.model = "tiny_residual",
                              .strategy = PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::backup},
                              .steps = 15,
                              .steps_per_round = 6});
}

/// Every share is one push. Those that were dropped are lost to the epoch, and told by name.
TEST(PsAsync, BackupTellsWhichSamplesAreLost) {
  int const workers = world().size() - 1;
  if (workers < 2) return;
  Training const training{
      .model = "tiny_residual",
      .strategy =
          PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::backup, .slow_worker = 0, .slow = 4},
      .steps = 15,
      .steps_per_round = 15};
  expect_replays_bit_for_bit(training, [&](trace::RankTrace const& server) {
    auto const& updates = server.table(trace::ps_table());
    std::map<std::int64_t, std::int64_t> dropped;  // by step and first sample
    for (std::size_t i = 0; i < static_cast<std::size_t>(updates.rows); ++i)
      dropped[updates.integers("step")[i] * training.global_batch +
              updates.integers("first_slot")[i]] = updates.integers("dropped")[i];
    EXPECT_EQ(std::ssize(dropped), training.steps * workers) << "every sample is in one of them";
    auto const lost = std::ranges::count(dropped | std::views::values, 1);
    EXPECT_GT(lost, 0);
    EXPECT_LT(lost, std::ssize(dropped));
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, PsAsync,
    testing::Values(
        PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::async},
        PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::async},
        PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::ssp, .staleness = 1},
        PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::lag_cap, .lag_cap = 1},
        PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::dana},
        PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::dc, .slow_worker = 0, .slow = 2},
        PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::dc_adaptive},
        PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::gap_aware},
        PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::modified},
        PsConfig{.servers = 2,
                 .chunk_mb = 4 * kib,
                 .transport = PsConfig::Transport::rma,
                 .mode = PsMode::dana},
        PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::softsync, .count = 2},
        PsConfig{.servers = 2,
                 .chunk_mb = 4 * kib,
                 .mode = PsMode::async,
                 .weight = ServerPolicy::Weight::inverse_gap,
                 .pull_every = 2},
        PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::modified, .warm_start = 4},
        PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::async, .pull_at_lag = 3},
        PsConfig{.servers = 2,
                 .chunk_mb = 4 * kib,
                 .mode = PsMode::dana,
                 .weight = ServerPolicy::Weight::inverse_gap,
                 .pulls = Pulls::chunkwise},
        PsConfig{.chunk_mb = 4 * kib,
                 .transport = PsConfig::Transport::rma,
                 .mode = PsMode::ssp,
                 .dc_lambda = 1,
                 .dc_decay = 0.9,
                 .pulls = Pulls::chunkwise,
                 .warm_start = 4},
        PsConfig{.chunk_mb = 4 * kib,
                 .mode = PsMode::lag_cap,
                 .lag_cap = 2,
                 .pull_at_lag = 3,
                 .pulls = Pulls::chunkwise}),
    [](auto const& info) { return "Mode" + std::to_string(info.index); });

/// Every share of the round is worked on once, whoever takes it.
TEST(PsAsync, WorksOnEverythingOnce) {
  Training const training{.model = "lenet",
                          .strategy = PsConfig{.mode = PsMode::async, .slow_worker = 0, .slow = 30},
                          .steps = 30};
  auto const own = train_here(training);
  auto const samples = static_cast<std::int64_t>(own.losses.size()) * training.global_batch /
                       std::max(world().size() - 1, 1);
  std::int64_t all = 0;
  for (auto const& text : world().all_gather(std::to_string(samples))) all += std::stoll(text);
  EXPECT_EQ(all, training.steps * training.global_batch);
  if (world().size() > 2 && world().rank() == 0) {
    EXPECT_LT(own.losses.size(), static_cast<std::size_t>(training.steps));
  }
}

}  // namespace
}  // namespace stratagem::test
