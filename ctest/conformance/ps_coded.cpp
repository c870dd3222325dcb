#include <algorithm>

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "conformance/expected.hpp"
#include "conformance/one_process.hpp"

namespace stratagem::test {
namespace {

constexpr double kib = 1.0 / 1024;

PsConfig& ps_of(Training& training) {
  auto& ps = std::get<PsConfig>(training.strategy);
  ps.servers = std::min(ps.servers, world().size() - 1);
  return ps;
}

/// Servers apply the sum of what they read, which is not coded.
void expect_equal_to_emulator(Training training) {
  auto const ps = ps_of(training);
  SerialConfig const serial{
      .micro_batches = ps.micro_batches, .compression = ps.compression, .compressed_sums = false};
  auto const own = train_here(training);
  if (world().rank() != 0) return;
  EXPECT_EQ(fingerprint(own), emulated(training, world().size() - ps.servers, serial));
}

class PsCoded : public testing::TestWithParam<Code> {};

TEST_P(PsCoded, SyncEqualsTheEmulatorBitForBit) {
  struct Case {
    Rounding rounding;
    bool feedback;
    char const* model;
    int servers;
    double chunk_mb;
  };
  for (auto const& [rounding, feedback, model, servers, chunk_mb] :
       {Case{Rounding::nearest, false, "tiny_odd", 1, 4.0},
        Case{Rounding::nearest, true, "lenet", 2, 0.05},
        Case{Rounding::stochastic, false, "tiny_residual", 1, 4 * kib},
        Case{Rounding::stochastic, true, "tiny_residual", 2, 4 * kib}}) {
    SCOPED_TRACE(str(model, feedback ? ", feedback, " : ", ", name_of(rounding)));
    expect_equal_to_emulator({.model = model,
                              .strategy = PsConfig{.servers = servers,
                                                   .chunk_mb = chunk_mb,
                                                   .compression = {GetParam(), rounding, feedback}},
                              .steps = 6});
  }
}

/// One worker of an asynchronous server.
TEST_P(PsCoded, AsyncOfOneWorkerIsSerial) {
  Compression const code{GetParam(), Rounding::stochastic, true};
  Training const training{.model = "lenet",
                          .strategy = PsConfig{.servers = world().size() - 1,
                                               .chunk_mb = 16 * kib,
                                               .mode = PsMode::async,
                                               .compression = code},
                          .steps = 10};
  auto const own = train_here(training);
  if (world().rank() != 0) return;
  EXPECT_EQ(fingerprint(own),
            emulated(training, 1, {.compression = code, .compressed_sums = false}));
}

INSTANTIATE_TEST_SUITE_P(Codes, PsCoded,
                         testing::Values(Code::bf16, Code::fp16, Code::int8, Code::int4,
                                         Code::natural, Code::ternary, Code::sign),
                         [](auto const& info) { return std::string(name_of(info.param)); });

TEST(PsCoded, SyncEqualsTheEmulatorHoweverGradientsAreMade) {
  PsConfig const ps{
      .servers = 2, .chunk_mb = 4 * kib, .compression = {Code::sign, Rounding::stochastic, true}};
  auto micro = ps;
  micro.micro_batches = 2;
  auto rma = ps;
  rma.transport = PsConfig::Transport::rma;
  auto chosen = ps;
  chosen.transport = PsConfig::Transport::automatic;
  for (auto const& each : {micro, rma, chosen})
    expect_equal_to_emulator(
        {.model = "tiny_residual", .strategy = each, .steps = 8, .global_batch = 48});
  for (auto const& optimizer :
       {OptimizerConfig{.lr = 0.02, .clip_norm = 0.5},
        OptimizerConfig{.lr = 1e-3, .rule = AdamwConfig{}, .clip_norm = 0.5}})
    expect_equal_to_emulator({.model = "tiny_residual", .strategy = ps, .optimizer = optimizer});
  expect_equal_to_emulator(
      {.model = "tiny_gpt", .strategy = ps, .optimizer = {.lr = 1e-3, .rule = AdamwConfig{}}});
  expect_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy = ps,
       .precision = {.compute = Precision::bf16, .loss_scale = LossScale::none}});
}

/// A worker clips what servers read, and applies that to what it has cached.
TEST(PsCoded, AsyncOfOneWorkerIsSerialUnderClippingAndWithCachedReads) {
  Compression const code{Code::int4, Rounding::nearest, true};
  for (auto const& ps :
       {PsConfig{.mode = PsMode::async, .compression = code},
        PsConfig{.mode = PsMode::ssp, .compression = code, .staleness = 7, .cached_reads = true}}) {
    auto served = ps;
    served.servers = world().size() - 1;
    served.chunk_mb = 16 * kib;
    Training const training{
        .model = "lenet",
        .strategy = served,
        .optimizer = {.lr = 0.05, .rule = SgdConfig{.momentum = 0}, .clip_norm = 0.5},
        .steps = 20};
    auto const own = train_here(training);
    if (world().rank() != 0) continue;
    EXPECT_EQ(fingerprint(own),
              emulated(training, 1, {.compression = code, .compressed_sums = false}));
  }
}

TEST(PsCoded, DelayedSyncEqualsItsSimulation) {
  Training training{.model = "tiny_residual",
                    .strategy = PsConfig{.servers = 2,
                                         .chunk_mb = 4 * kib,
                                         .mode = PsMode::delayed_sync,
                                         .compression = {Code::int8, Rounding::stochastic, true}},
                    .steps_per_round = 7};
  auto const servers = ps_of(training).servers;
  auto const own = train_here(training);
  if (world().rank() != 0) return;
  EXPECT_EQ(differences(own.parameters, simulate(training, world().size() - servers).parameters),
            std::vector<std::string>());
}

}  // namespace
}  // namespace stratagem::test
