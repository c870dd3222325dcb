#include "conformance/training.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "conformance/in_process.hpp"

namespace stratagem::test {
namespace {

Trained train_alone(Training const& training) {
  SerialCommunicator alone({});
  return train(training, alone);
}

double largest_difference(std::vector<double> const& a, std::vector<double> const& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

/// 8 bits of mantissa move the loss, which falls from 2.3, by less than 0.05 in 40 steps.
TEST(Training, Bf16FollowsFp32) {
  for (auto const* model : {"lenet", "tiny_odd"}) {
    Training training{.model = model, .strategy = SerialConfig{}, .steps = 40};
    auto const fp32 = train_alone(training);
    training.precision = {.compute = Precision::bf16, .loss_scale = LossScale::none};
    auto const bf16 = train_alone(training);
    ASSERT_EQ(bf16.losses.size(), fp32.losses.size());
    EXPECT_LT(largest_difference(bf16.losses, fp32.losses), 0.05) << model;
    EXPECT_NE(bf16.losses, fp32.losses) << model;
    EXPECT_LT(fp32.losses.back(), 2.2) << "it learns: " << model;
    for (auto const& [name, tensor] : bf16.parameters) EXPECT_EQ(tensor.scalar_type(), at::kFloat);

    training.precision.loss_scale = LossScale::dynamic;
    EXPECT_LT(largest_difference(train_alone(training).losses, bf16.losses), 0.05) << model;
  }
}

/// fp64 and fp32 stay together for a few steps: the masters have the type they should.
TEST(Training, Fp64IsWide) {
  Training training{.model = "tiny_odd", .strategy = SerialConfig{}, .steps = 5};
  auto const fp32 = train_alone(training);
  training.precision = {.compute = Precision::fp64};
  auto const fp64 = train_alone(training);
  EXPECT_LT(largest_difference(fp64.losses, fp32.losses), 1e-5);
  for (auto const& [name, tensor] : fp64.parameters) EXPECT_EQ(tensor.scalar_type(), at::kDouble);
}

/// Neither statistics nor masks see a recomputed block twice.
TEST(Training, RecomputingChangesNoBit) {
  for (auto const* model : {"tiny_residual", "tiny_odd"}) {
    Training training{.model = model, .strategy = SerialConfig{.emulate_ranks = 2}, .steps = 5};
    auto const expected = fingerprint(train_alone(training));
    for (int const every : {1, 2}) {
      training.recompute = {every};
      EXPECT_EQ(fingerprint(train_alone(training)), expected) << model << ", every " << every;
    }
  }
}

/// tiny_odd drops a quarter of its activations. Were the masks another number of workers' own, the
/// losses would differ in the first digit.
TEST(Training, DropoutMasksDoNotDependOnTheNumberOfWorkers) {
  Training training{.model = "tiny_odd", .strategy = SerialConfig{}, .steps = 5};
  training.precision = {.compute = Precision::fp64};
  auto const one = train_alone(training).losses;
  for (int const workers : {2, 3, 4}) {
    training.strategy = SerialConfig{.emulate_ranks = workers};
    EXPECT_LT(largest_difference(train_alone(training).losses, one), 1e-12) << workers;
  }
  training.strategy = SerialConfig{.micro_batches = 6};
  EXPECT_LT(largest_difference(train_alone(training).losses, one), 1e-12) << "micro-batches";
}

/// What `reduction: sum` does is what a larger learning rate does.
TEST(Training, SumsAreMeansTimesTheWorkers) {
  Training training{.model = "tiny_odd", .strategy = SerialConfig{.emulate_ranks = 4}, .steps = 5};
  training.precision = {.compute = Precision::fp64};
  training.optimizer = {.lr = 0.01, .reduction = Reduction::sum};
  auto const sums = train_alone(training).losses;
  training.optimizer = {.lr = 0.04, .reduction = Reduction::mean};
  EXPECT_LT(largest_difference(train_alone(training).losses, sums), 1e-12);
}

TEST(Training, ANonFiniteLossNamesStepRankAndBlockOnAllRanks) {
  Training training{.strategy = DdpConfig{}, .optimizer = {.lr = 1e30}};
  expect_non_finite_loss(training, 2, "at step 1 on rank 0");
}

}  // namespace
}  // namespace stratagem::test
