#include "model/layers.hpp"

#include <optional>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace stratagem {
namespace {

Context const kTraining{.training = true, .seed = 5, .step = 7, .first_slot = 0};

/// The frame of one layer alone.
struct Alone {
  std::vector<at::Tensor> parameters, buffers;
  Frame frame(Context const& context) const { return {parameters, buffers, context}; }
};

TEST(Layers, MaskOfASampleDependsOnItsSlotAlone) {
  auto const whole = keep_mask(kTraining, "fc", 8, 37, 0.5);
  for (std::int64_t size : {1, 2, 4}) {
    for (std::int64_t begin = 0; begin < 8; begin += size) {
      auto context = kTraining;
      context.first_slot = begin;
      EXPECT_TRUE(at::equal(keep_mask(context, "fc", size, 37, 0.5), whole.narrow(0, begin, size)));
    }
  }
  EXPECT_TRUE(at::equal(keep_mask(kTraining, "fc", 8, 10, 0.5), whole.narrow(1, 0, 10)));
}

TEST(Layers, MaskChangesWithSeedStepAndName) {
  auto const mask = keep_mask(kTraining, "fc", 8, 64, 0.5);
  auto seed = kTraining, step = kTraining;
  seed.seed = 6;
  step.step = 8;
  EXPECT_FALSE(at::equal(mask, keep_mask(seed, "fc", 8, 64, 0.5)));
  EXPECT_FALSE(at::equal(mask, keep_mask(step, "fc", 8, 64, 0.5)));
  EXPECT_FALSE(at::equal(mask, keep_mask(kTraining, "fd", 8, 64, 0.5)));
}

TEST(Layers, MaskDropsWithTheProbabilityAsked) {
  for (double const p : {0.1, 0.4, 0.5}) {
    auto const kept = keep_mask(kTraining, "fc", 100, 1000, p).mean().item<double>();
    EXPECT_NEAR(kept, 1 - p, 0.01);
  }
}

TEST(Layers, DropoutScalesWhatItKeeps) {
  auto const x = at::ones({4, 50});
  Dropout const dropout{"fc", 0.2};
  auto const y = dropout(x, Alone().frame(kTraining));
  EXPECT_TRUE(at::allclose(y, keep_mask(kTraining, "fc", 4, 50, 0.2) / 0.8));
}

TEST(Layers, StochasticDepthDropsWholeSamples) {
  auto const x = at::randn({16, 3, 2, 2});
  StochasticDepth const depth{"branch", 0.5};
  auto const y = depth(x, Alone().frame(kTraining));
  auto const kept = keep_mask(kTraining, "branch", 16, 1, 0.5);
  EXPECT_TRUE(at::equal(y, x * (2 * kept).view({16, 1, 1, 1})));
  EXPECT_TRUE(kept.sum().item<double>() > 0 && kept.sum().item<double>() < 16);
}

TEST(Layers, NothingIsDroppedInEvaluationOrWhenTurnedOff) {
  auto const x = at::randn({4, 50});
  auto evaluation = kTraining, off = kTraining;
  evaluation.training = false;
  off.dropout = false;
  for (auto const& context : {evaluation, off}) {
    EXPECT_TRUE((Dropout{"fc", 0.5}(x, Alone().frame(context)).is_same(x)));
    EXPECT_TRUE((StochasticDepth{"fc", 0.5}(x, Alone().frame(context)).is_same(x)));
  }
}

TEST(Layers, BatchNormAveragesStatisticsInTraining) {
  Declaration declare;
  BatchNorm2d const norm(declare, "bn", 3);
  Alone const alone{{at::ones({3}), at::zeros({3})},
                    {at::zeros({3}), at::ones({3}), at::zeros({}, at::kLong)}};
  auto const x = at::randn({4, 3, 2, 2}) + 1;
  norm(x, alone.frame(Context{}));
  EXPECT_TRUE(at::equal(alone.buffers[0], at::zeros({3})));
  auto const y = norm(x, alone.frame(kTraining));
  EXPECT_EQ(alone.buffers[2].item<std::int64_t>(), 0) << "whoever runs the block counts";
  EXPECT_TRUE(at::allclose(alone.buffers[0], x.mean({0, 2, 3}) * 0.1));
  EXPECT_TRUE(at::allclose(y.mean({0, 2, 3}), at::zeros({3}), 0, 1e-6));
}

TEST(Layers, BatchNormRefusesToTrainOnOneValue) {
  Declaration declare;
  BatchNorm2d const norm(declare, "bn", 3);
  Alone const alone{{at::ones({3}), at::zeros({3})},
                    {at::zeros({3}), at::ones({3}), at::zeros({}, at::kLong)}};
  EXPECT_THROW(norm(at::randn({1, 3, 1, 1}), alone.frame(kTraining)), Error);
  EXPECT_NO_THROW(norm(at::randn({1, 3, 1, 1}), alone.frame(Context{})));
  EXPECT_NO_THROW(norm(at::randn({2, 3, 1, 1}), alone.frame(kTraining)));
}

TEST(Layers, LayerNormOfSixteenBitIsComputedInThirtyTwo) {
  Declaration declare;
  LayerNorm const norm(declare, "ln", 64);
  Alone const alone{{at::randn({64}), at::randn({64})}, {}};
  auto const x = at::randn({4, 64}).to(at::kBFloat16);
  auto const y = norm(x, alone.frame(kTraining));
  auto const expected =
      at::layer_norm(x.to(at::kFloat), {64}, alone.parameters[0], alone.parameters[1], 1e-5);
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(y, expected.to(at::kBFloat16)));
}

TEST(Layers, ConvolutionWithGroupsDeclaresTheirShape) {
  Declaration declare;
  Conv2d const conv(declare, "dw", {.in = 8, .out = 16, .kernel = 3, .groups = 4, .bias = true},
                    default_uniform(18));
  EXPECT_EQ(declare.names(), (std::vector<std::string>{"dw.weight", "dw.bias"}));
  EXPECT_EQ(declare.parameters()[0].shape, (std::vector<std::int64_t>{16, 2, 3, 3}));
  EXPECT_EQ(conv.shape.fan_in(), 18);
  EXPECT_EQ(conv.shape.fan_out(), 144);
}

}  // namespace
}  // namespace stratagem
