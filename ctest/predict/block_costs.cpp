#include "predict/block_costs.hpp"

#include <map>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gpu/memory.hpp"
#include "strategy/pass/replica.hpp"
#include "strategy/state/buffers.hpp"
#include "support/one_pass.hpp"

namespace stratagem {
namespace {

ModelConfig small(std::int64_t heads, std::int64_t width) {
  return {.name = "gpt2", .num_classes = 0, .layers = 2, .heads = heads, .width = width};
}

/// Of a sequence and a layer: (16 C + 4 + h) 4 T bytes, in fp32. The attention half keeps 6 C of
/// them: x, its norm, queries with keys and values, and what comes out; and h for the sums of
/// softmax. The other half keeps 10 C: x, its norm, and 4 C before and after gelu. Each norm keeps
/// a mean and a deviation.
TEST(BlockCosts, LayersOfATransformerKeepWhatTheFormulaSays) {
  struct {
    std::int64_t heads, width, tokens;
  } const cases[]{{4, 64, 32}, {4, 128, 64}, {12, 768, 128}};
  for (auto const& [heads, width, tokens] : cases) {
    auto const config = small(heads, width);
    InputShape const input{.tokens = tokens, .vocabulary = 97};
    auto const model = make_model(config, input);
    for (auto const& cost : block_costs(model, config, input)) {
      auto const c = width * tokens, one = tokens;
      if (cost.name.ends_with(".attn")) {
        EXPECT_EQ(cost.kept, 4 * (6 * c + (2 + heads) * one)) << cost.name << ' ' << width;
      }
      if (cost.name.ends_with(".mlp")) {
        EXPECT_EQ(cost.kept, 4 * (10 * c + 2 * one)) << cost.name << ' ' << width;
      }
    }
  }
}

/// Forward, of one sequence: matrices 2 x 12 C^2 T, attention 4 C T^2 in all of its square, and the
/// head 2 C V T. Training takes three times as much: the rule that MFU goes by.
TEST(BlockCosts, FlopsOfATransformerFollowTheRule) {
  constexpr std::int64_t heads = 4, width = 128, tokens = 64, vocabulary = 97;
  auto const config = small(heads, width);
  InputShape const input{.tokens = tokens, .vocabulary = vocabulary};
  auto const model = make_model(config, input);
  double flops = 0;
  for (auto const& cost : block_costs(model, config, input)) flops += cost.flops;
  auto const matrices = 2.0 * (2 * 12 * width * width + vocabulary * width) * tokens;
  auto const attention = 2 * 4.0 * width * tokens * tokens;
  EXPECT_EQ(flops, matrices + attention);
  // The rule counts biases and norms among the parameters that are multiplied.
  EXPECT_NEAR(model.train_flops * tokens, 3 * flops, 0.02 * 3 * flops);
}

/// Convolutions of small maps are products of taps, which leave out what meets only padding; what a
/// model computes is told by shapes all the same.
TEST(BlockCosts, FlopsAreThoseOfShapesHoweverConvolutionsAreComputed) {
  for (auto const* name : {"lenet", "resnet50", "densenet121"}) {
    ModelConfig config{.name = name, .num_classes = 10};
    auto const input = usual_input(find_model(name));
    auto const fused = block_costs(make_model(config, input), config, input);
    config.fused = false;
    auto const library = block_costs(make_model(config, input), config, input);
    for (std::size_t i = 0; i < fused.size(); ++i)
      EXPECT_EQ(fused[i].flops, library[i].flops) << name << ' ' << fused[i].name;
  }
}

/// 4.09 billion multiplications of one image of 224 pixels, as torchvision's page of models says.
TEST(BlockCosts, FlopsOfResNet50AreThePublishedOnes) {
  ModelConfig const config{.name = "resnet50", .num_classes = 1000};
  InputShape const input{.channels = 3, .size = 224};
  double flops = 0;
  for (auto const& cost : block_costs(make_model(config, input), config, input))
    flops += cost.flops;
  EXPECT_NEAR(1e-9 * flops / 2, 4.09, 0.005);
}

/// With recompute: all, nothing but the input of each block, BTC; of the first, no more than
/// tokens.
TEST(BlockCosts, RecomputedLayersKeepTheirInput) {
  constexpr std::int64_t samples = 3, tokens = 32, width = 64;
  InputShape const input{.tokens = tokens, .vocabulary = 97};
  auto const model = make_model(small(4, width), input);
  gpu::Device const host;
  Replica const replica(model, Precision::fp32, host, 1);
  auto const buffers = make_buffers(model, host, Precision::fp32);
  test::OnePass tape(model.blocks, {.every = 1});
  Context const context{.training = true};
  auto x = blank_input(input, samples);
  auto const bytes = static_cast<std::int64_t>(4 * samples * tokens * width);
  for (int block = 0; block + 1 < tape.blocks(); ++block) {
    auto const before = gpu::live_memory(host).total();
    x = tape.forward(block, x, {replica.parameters(block), buffers[0], context});
    EXPECT_EQ(gpu::live_memory(host).total() - before, bytes) << "what the next block gets";
  }
}

}  // namespace
}  // namespace stratagem
