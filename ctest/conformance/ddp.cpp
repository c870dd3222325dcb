#include <cmath>

#include <gtest/gtest.h>

#include "conformance/expected.hpp"

namespace stratagem::test {
namespace {

void expect_equal_to_emulator(Training const& training) {
  SerialConfig const serial{.micro_batches = std::get<DdpConfig>(training.strategy).micro_batches};
  auto expected = world().rank() == 0 ? emulated(training, world().size(), serial) : std::string();
  world().broadcast(expected, 0);
  expect_result(training, expected, Replicas::everywhere);
}

struct Case {
  std::string model;
  DdpConfig ddp;
  Recompute recompute;
};

std::string name(testing::TestParamInfo<Case> const& info) {
  auto const& [model, ddp, recompute] = info.param;
  return model + (ddp.overlap ? "_overlap" : "_inturn") + "_bucket" +
         std::to_string(std::lround(ddp.bucket_mb * 1024)) + "K_micro" +
         std::to_string(ddp.micro_batches) + "_recompute" + std::to_string(recompute.every);
}

class Ddp : public testing::TestWithParam<Case> {};

TEST_P(Ddp, EqualsTheEmulatorBitForBit) {
  expect_equal_to_emulator(
      {.model = GetParam().model, .strategy = GetParam().ddp, .recompute = GetParam().recompute});
}

constexpr double kib = 1.0 / 1024;

INSTANTIATE_TEST_SUITE_P(
    All, Ddp,
    testing::Values(Case{"lenet", {.bucket_mb = 25}}, Case{"lenet", {.bucket_mb = kib}},
                    Case{"lenet", {.bucket_mb = 25, .overlap = false}},
                    Case{"lenet", {.bucket_mb = 0.5, .micro_batches = 3}},
                    Case{"tiny_residual", {.bucket_mb = 25}},
                    Case{"tiny_residual", {.bucket_mb = kib}},
                    Case{"tiny_residual", {.bucket_mb = kib, .overlap = false}},
                    Case{"tiny_residual", {.bucket_mb = 4 * kib, .micro_batches = 3}},
                    Case{"tiny_odd", {.bucket_mb = 25}}, Case{"tiny_odd", {.bucket_mb = kib}},
                    Case{"tiny_odd", {.bucket_mb = kib, .overlap = false, .micro_batches = 3}},
                    Case{"tiny_odd", {.bucket_mb = 4 * kib, .micro_batches = 3}},
                    Case{"tiny_maps", {.bucket_mb = kib}},
                    Case{"tiny_maps", {.bucket_mb = kib, .micro_batches = 3}, {.every = 1}},
                    Case{"tiny_maps_not_fused", {.bucket_mb = kib}},
                    Case{"tiny_exported", {.bucket_mb = 4 * kib}},
                    Case{"tiny_exported", {.bucket_mb = kib, .micro_batches = 3}, {.every = 2}},
                    Case{"lenet", {.bucket_mb = 25}, {.every = 1}},
                    Case{"tiny_residual", {.bucket_mb = kib, .micro_batches = 3}, {.every = 1}},
                    Case{"tiny_residual", {.bucket_mb = kib}, {.every = 2}},
                    Case{"tiny_odd", {.bucket_mb = 4 * kib}, {.every = 1}},
                    Case{"tiny_odd", {.bucket_mb = kib}, {.every = 3}}),
    name);

TEST(Ddp, EqualsTheEmulatorWithClippingAndNesterov) {
  expect_equal_to_emulator({.model = "tiny_residual",
                            .strategy = DdpConfig{.bucket_mb = 4 * kib},
                            .optimizer = {.lr = 0.02,
                                          .weight_decay = 1e-3,
                                          .rule = SgdConfig{.nesterov = true},
                                          .clip_norm = 0.5}});
}

/// With steps that overflow: they change nothing, and are not counted.
TEST(Ddp, EqualsTheEmulatorUnderEveryOptimizer) {
  for (auto optimizer : all_optimizers())
    for (auto const decay : {Decay::all, Decay::weights}) {
      optimizer.weight_decay = 0.1;
      optimizer.decay = decay;
      Training training{.model = "tiny_residual",
                        .strategy = DdpConfig{.bucket_mb = 4 * kib},
                        .optimizer = optimizer};
      expect_equal_to_emulator(training);
      training.precision = scaled_bf16;
      training.counters = overflowing();
      training.optimizer.clip_norm = 0.5;
      expect_equal_to_emulator(training);
    }
}

TEST(Ddp, EqualsTheEmulatorInBf16WithLossScaling) {
  expect_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy = DdpConfig{.bucket_mb = 4 * kib},
       .precision = {.compute = Precision::bf16, .loss_scale = LossScale::dynamic}});
}

TEST(Ddp, EqualsTheEmulatorWithSummedGradients) {
  expect_equal_to_emulator({.model = "tiny_odd",
                            .strategy = DdpConfig{},
                            .optimizer = {.lr = 0.005, .reduction = Reduction::sum}});
}

}  // namespace
}  // namespace stratagem::test
