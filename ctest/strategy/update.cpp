#include "strategy/shared/update.hpp"

#include <functional>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"
#include "params/initialise.hpp"
#include "strategy/pass/replica.hpp"

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

Update update_for(Replica const& replica, OptimizerConfig const& optimizer,
                  PrecisionConfig const& precision, int workers = 1, int micro_batches = 1) {
  return {optimizer, precision, workers, micro_batches, all_elements(replica.layout()), {}};
}

/// A whole step; false when it was skipped.
bool step(Update& update, Replica& replica, at::Tensor const& gradients) {
  FlatRange const all{0, replica.layout().size()};
  bool const decides = update.way() == Update::Way::by_decision;
  if (decides && !update.admit(gradient_norm({&gradients, 1}))) return false;
  update.begin();
  update.apply(all, replica, gradients, lr);
  return true;
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
    auto update =
        update_for(replica, {.rule = SgdConfig{.momentum = 0}, .reduction = reduction}, fp32, 4, 2);
    EXPECT_EQ(update.way(), Update::Way::by_range);
    EXPECT_EQ(update.loss_scale(), 1);
    auto const before = replica.flat().clone();
    auto const gradients = gradients_for(replica);
    EXPECT_TRUE(step(update, replica, gradients));
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
    auto update =
        update_for(replica, {.rule = SgdConfig{.momentum = 0}, .clip_norm = limit}, fp32, 4, 1);
    EXPECT_EQ(update.way(), Update::Way::by_decision);
    auto const before = replica.flat().clone();
    EXPECT_TRUE(step(update, replica, gradients));
    expect_moved(replica, before, gradients, 0.25 * std::min(1.0, limit / (norm + 1e-6)));
  }
}

TEST(Update, SkipsAnOverflowAndLeavesEverythingAsItWas) {
  auto replica = replica_in(scaled);
  auto update = update_for(replica, {.weight_decay = 0.01}, scaled, 2, 1);
  EXPECT_EQ(update.way(), Update::Way::by_decision);
  auto const scale = update.loss_scale();
  auto const gradients = gradients_for(replica) * scale;
  ASSERT_TRUE(step(update, replica, gradients));

  auto const parameters = replica.flat().clone(), momentum = update.state()[0].second.clone();
  auto const rounded = replica.parameters(0)[0].detach().clone();
  auto overflowed = gradients.clone();
  overflowed[17] = infinity;
  EXPECT_FALSE(step(update, replica, overflowed));
  EXPECT_EQ(update.loss_scale(), scale / 2);
  EXPECT_TRUE(replica.flat().equal(parameters));
  EXPECT_TRUE(update.state()[0].second.equal(momentum));
  EXPECT_TRUE(replica.parameters(0)[0].detach().equal(rounded));

  ASSERT_TRUE(step(update, replica, gradients / 2));
  EXPECT_FALSE(replica.flat().equal(parameters));
  EXPECT_FALSE(replica.parameters(0)[0].detach().equal(rounded)) << "the copy was renewed";
}

TEST(Update, TheLossScaleDoesNotChangeTheStep) {
  auto plain = replica_in(scaled), with_scale = replica_in(scaled);
  auto unscaled =
      update_for(plain, {}, {.compute = Precision::bf16, .loss_scale = LossScale::none});
  auto dynamic = update_for(with_scale, {}, scaled);
  auto const gradients = gradients_for(plain);
  EXPECT_TRUE(step(unscaled, plain, gradients));
  EXPECT_TRUE(step(dynamic, with_scale, gradients * dynamic.loss_scale()));
  EXPECT_TRUE(plain.flat().equal(with_scale.flat())) << "powers of two are exact";
}

TEST(Update, GivesUpWhereNoScaleHelps) {
  auto replica = replica_in(scaled);
  auto update = update_for(replica, {}, scaled);
  auto gradients = gradients_for(replica);
  gradients[0] = infinity;
  auto const before = replica.flat().clone();
  while (update.loss_scale() > LossScaler::least_scale)
    ASSERT_FALSE(step(update, replica, gradients));
  EXPECT_EQ(code_of([&] { step(update, replica, gradients); }), ExitCode::non_finite);
  EXPECT_TRUE(replica.flat().equal(before));

  auto narrow = replica_in(fp32);
  auto clipping = update_for(narrow, {.clip_norm = 1}, fp32);
  EXPECT_EQ(code_of([&] { step(clipping, narrow, gradients); }), ExitCode::non_finite);
}

TEST(Update, TheNormDoesNotDependOnHowGradientsAreSpread) {
  auto const gradients = gradients_for(replica_in(fp32));
  auto const whole = gradient_norm({&gradients, 1});
  for (int const ranks : {1, 2, 3}) {
    run_ranks(ranks, 1, [&](Communicator& communicator) {
      auto const part = gradients.chunk(ranks)[static_cast<std::size_t>(communicator.rank())];
      auto const halves = part.chunk(2);
      EXPECT_EQ(gradient_norm(halves, communicator), whole) << ranks << " ranks";
    });
  }
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
