#include "strategy/update.hpp"

#include <functional>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "conformance/training.hpp"
#include "params/initialise.hpp"

namespace stratagem {
namespace {

constexpr PrecisionConfig fp32{};
constexpr PrecisionConfig scaled{.compute = Precision::bf16, .loss_scale = LossScale::dynamic};
constexpr double lr = 0.1;
constexpr float infinity = std::numeric_limits<float>::infinity();

Model const& lenet() {
  static Model const model = test::test_model("lenet");
  return model;
}

Replica replica_in(PrecisionConfig const& precision) {
  return {lenet(), precision.compute, {}, 1};
}

at::Tensor gradients_for(Replica const& replica) {
  auto const values = at::empty_like(replica.flat());
  initialise(values, {"gradients", values.sizes().vec(), Initialiser::normal(1)}, 2);
  return values;
}

/// `before` - lr x scale x gradients, within rounding.
void expect_moved(Replica const& replica, at::Tensor const& before, at::Tensor const& gradients,
                  double scale) {
  auto const expected = before.to(at::kDouble) - lr * scale * gradients.to(at::kDouble);
  auto const error = (replica.flat().to(at::kDouble) - expected).abs().max().item<double>();
  EXPECT_LT(error, 1e-6);
}

ExitCode code_of(std::function<void()> const& action) {
  try {
    action();
  } catch (AgreedError const& error) {
    return error.code();
  }
  return ExitCode::done;
}

TEST(Update, TakesTheMeanOverWorkersAndMicroBatches) {
  for (auto const reduction : {Reduction::mean, Reduction::sum}) {
    auto replica = replica_in(fp32);
    Update update({.momentum = 0, .reduction = reduction}, fp32, 4, 2, replica);
    EXPECT_TRUE(update.by_range());
    EXPECT_EQ(update.loss_scale(), 1);
    auto const before = replica.flat().clone();
    auto const gradients = gradients_for(replica);
    update.range({0, replica.layout().size()}, gradients, lr);
    expect_moved(replica, before, gradients, reduction == Reduction::mean ? 1.0 / 8 : 1.0 / 2);
  }
}

/// torch.nn.utils.clip_grad_norm_: factor = min(1, limit / (norm + 1e-6)).
TEST(Update, ClipsByTorchsRule) {
  for (double const share : {0.1, 0.999, 1.001, 50.0}) {
    auto replica = replica_in(fp32);
    auto const gradients = gradients_for(replica);
    auto const norm = at::linalg_vector_norm(gradients.to(at::kDouble) / 4).item<double>();
    auto const limit = share * norm;
    Update update({.momentum = 0, .clip_norm = limit}, fp32, 4, 1, replica);
    EXPECT_FALSE(update.by_range());
    auto const before = replica.flat().clone();
    EXPECT_TRUE(update.whole(gradients, lr));
    expect_moved(replica, before, gradients, 0.25 * std::min(1.0, limit / (norm + 1e-6)));
  }
}

TEST(Update, SkipsAnOverflowAndLeavesEverythingAsItWas) {
  auto replica = replica_in(scaled);
  Update update({.weight_decay = 0.01}, scaled, 2, 1, replica);
  EXPECT_FALSE(update.by_range());
  auto const scale = update.loss_scale();
  auto const gradients = gradients_for(replica) * scale;
  ASSERT_TRUE(update.whole(gradients, lr));

  auto const parameters = replica.flat().clone(), momentum = update.momentum().clone();
  auto const rounded = replica.parameters(0)[0].detach().clone();
  auto overflowed = gradients.clone();
  overflowed[17] = infinity;
  EXPECT_FALSE(update.whole(overflowed, lr));
  EXPECT_EQ(update.loss_scale(), scale / 2);
  EXPECT_TRUE(replica.flat().equal(parameters));
  EXPECT_TRUE(update.momentum().equal(momentum));
  EXPECT_TRUE(replica.parameters(0)[0].detach().equal(rounded));

  ASSERT_TRUE(update.whole(gradients / 2, lr));
  EXPECT_FALSE(replica.flat().equal(parameters));
  EXPECT_FALSE(replica.parameters(0)[0].detach().equal(rounded)) << "the copy was renewed";
}

TEST(Update, TheLossScaleDoesNotChangeTheStep) {
  auto plain = replica_in(scaled), with_scale = replica_in(scaled);
  Update unscaled({}, {.compute = Precision::bf16, .loss_scale = LossScale::none}, 1, 1, plain);
  Update dynamic({}, scaled, 1, 1, with_scale);
  auto const gradients = gradients_for(plain);
  EXPECT_TRUE(unscaled.whole(gradients, lr));
  EXPECT_TRUE(dynamic.whole(gradients * dynamic.loss_scale(), lr));
  EXPECT_TRUE(plain.flat().equal(with_scale.flat())) << "powers of two are exact";
}

TEST(Update, GivesUpWhereNoScaleHelps) {
  auto replica = replica_in(scaled);
  Update update({}, scaled, 1, 1, replica);
  auto gradients = gradients_for(replica);
  gradients[0] = infinity;
  auto const before = replica.flat().clone();
  while (update.loss_scale() > LossScaler::least_scale) ASSERT_FALSE(update.whole(gradients, lr));
  EXPECT_EQ(code_of([&] { update.whole(gradients, lr); }), ExitCode::non_finite);
  EXPECT_TRUE(replica.flat().equal(before));

  auto narrow = replica_in(fp32);
  Update clipping({.clip_norm = 1}, fp32, 1, 1, narrow);
  EXPECT_EQ(code_of([&] { clipping.whole(gradients, lr); }), ExitCode::non_finite);
}

TEST(Update, OnlySixteenBitFloatsScaleTheirLoss) {
  EXPECT_TRUE(scales_loss({.compute = Precision::fp16}));
  EXPECT_TRUE(scales_loss(scaled));
  EXPECT_FALSE(scales_loss({.compute = Precision::bf16, .loss_scale = LossScale::none}));
  EXPECT_FALSE(scales_loss({.compute = Precision::fp32, .loss_scale = LossScale::dynamic}));
  EXPECT_FALSE(scales_loss({.compute = Precision::fp64, .loss_scale = LossScale::dynamic}));
}

}  // namespace
}  // namespace stratagem
