#include "model/zoo/experts.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/support.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t width = 12, experts = 4, tokens = 10;

Blocks one_half() {
  Blocks blocks;
  blocks.push_back(make_experts_half("h.0", {.width = width, .experts = experts}));
  return blocks;
}

/// Every expert computes every token, and what was not chosen counts nothing: slow, and plain.
at::Tensor by_all(at::Tensor const& x, std::vector<at::Tensor> const& p) {
  auto const h = at::layer_norm(x, {width}, p[0], p[1], 1e-5).flatten(0, 1);
  auto const scores = at::mm(h, p[2]);
  auto const [highest, chosen] = scores.topk(2, 1);
  auto const weights = at::zeros_like(scores).scatter(1, chosen, highest.softmax(1));
  auto mixed = at::zeros_like(h);
  for (std::int64_t e = 0; e < experts; ++e) {
    auto const wide = at::gelu(at::mm(h, p[3][e]) + p[4][e], "tanh");
    mixed = mixed + weights.select(1, e).unsqueeze(1) * (at::mm(wide, p[5][e]) + p[6][e]);
  }
  return x + mixed.view(x.sizes());
}

TEST(Experts, MixTheTwoThatTheRouterPrefers) {
  auto const blocks = one_half();
  test::State const state(blocks, at::kDouble);
  auto const x = at::randn({2, tokens, width}, at::kDouble).requires_grad_();
  Context const context{};
  auto const& parameters = state.parameters(0);
  auto const y = blocks[0]->forward(x, state.frame(0, context));
  auto const expected = by_all(x, parameters);
  EXPECT_TRUE(at::allclose(y, expected, 1e-12, 1e-12));
  std::vector<at::Tensor> wanted = parameters;
  wanted.push_back(x);
  auto const direction = at::randn_like(y);
  auto const own = torch::autograd::grad({y}, wanted, {direction});
  auto const theirs = torch::autograd::grad({expected}, wanted, {direction});
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(at::allclose(own[i], theirs[i], 1e-10, 1e-12)) << i;
}

TEST(Experts, CountTheirTokensInTraining) {
  auto const blocks = one_half();
  test::State const state(blocks);
  auto const x = at::randn({3, tokens, width});
  auto const& counts = state.buffers(0)[0];
  Context context{};
  blocks[0]->forward(x, state.frame(0, context));
  EXPECT_EQ(counts.sum().item<std::int64_t>(), 0);
  context.training = true;
  for (int pass = 1; pass <= 2; ++pass) {
    blocks[0]->forward(x, state.frame(0, context));
    EXPECT_EQ(counts.sum().item<std::int64_t>(), 2 * 3 * tokens * pass) << "none is dropped";
  }
}

/// Its gradient is added to the router's, times the scale of the loss; the output is the same.
TEST(Experts, BalanceEntersTheGradientOfTheRouterAlone) {
  auto const blocks = one_half();
  test::State const state(blocks, at::kDouble);
  auto const x = at::randn({2, tokens, width}, at::kDouble);
  auto const& p = state.parameters(0);
  auto const gradients = [&](Context const& context) {
    auto const y = blocks[0]->forward(x, state.frame(0, context));
    return torch::autograd::grad({y}, p, {at::zeros_like(y)});
  };
  EXPECT_EQ(gradients({})[2].abs().max().item<double>(), 0);
  auto const once = gradients({.training = true});
  auto const scaled = gradients({.training = true, .loss_scale = 64});
  EXPECT_GT(once[2].abs().max().item<double>(), 0);
  EXPECT_TRUE(at::allclose(scaled[2], 64 * once[2]));
  EXPECT_EQ(once[3].abs().max().item<double>(), 0) << "not of an expert";

  auto const scores = at::mm(at::layer_norm(x, {width}, p[0], p[1], 1e-5).flatten(0, 1), p[2]);
  auto const shares = at::one_hot(std::get<1>(scores.topk(2, 1)), experts)
                          .sum(at::IntArrayRef{0, 1})
                          .to(at::kDouble)
                          .div(2 * scores.size(0));
  auto const loss = 0.01 * experts * (shares * scores.softmax(1).mean(0)).sum();
  auto const expected = torch::autograd::grad({loss}, std::vector<at::Tensor>{p[2]});
  EXPECT_TRUE(at::allclose(once[2], expected[0], 1e-10, 1e-12));
}

TEST(Experts, BiasesOfAllExpertsAreVectors) {
  auto const blocks = one_half();
  std::vector<std::string> vectors;
  for (auto const& spec : blocks[0]->declaration().parameters())
    if (spec.is_vector()) vectors.push_back(spec.name);
  EXPECT_EQ(vectors,
            (std::vector<std::string>{"h.0.ln_2.weight", "h.0.ln_2.bias",
                                      "h.0.mlp.experts.c_fc.bias", "h.0.mlp.experts.c_proj.bias"}));
}

}  // namespace
}  // namespace stratagem
