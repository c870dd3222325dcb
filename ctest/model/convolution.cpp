#include "model/convolution.hpp"

#include <array>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/text.hpp"
#include "model/layers.hpp"
#include "model/support.hpp"

namespace stratagem {
namespace {

struct Case {
  std::int64_t in, out, groups, kernel, stride, padding, height, width;
};

/// Every one for small maps.
std::vector<Case> cases() {
  std::vector<Case> found;
  for (std::int64_t const kernel : {1, 2, 3, 5, 7})
    for (std::int64_t const stride : {1, 2})
      for (std::int64_t const padding : {std::int64_t{0}, kernel / 2})
        for (auto const& [height, width] :
             {std::pair{1, 1}, {2, 2}, {1, 3}, {3, 2}, {4, 4}, {5, 3}, {7, 7}})
          for (auto const& [in, out, groups] :
               {std::tuple{5, 7, 1}, {1, 4, 1}, {6, 6, 6}, {67, 67, 67}})
            found.push_back({in, out, groups, kernel, stride, padding, height, width});
  return found;
}

struct Results {
  at::Tensor y, of_x, of_weight, of_bias;
};

template <class Convolve>
Results results_of(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& bias,
                   Convolve const& convolve) {
  auto const y = convolve();
  auto const begin = at::arange(y.numel(), y.options()).sin_().view(y.sizes());
  auto const gradients = torch::autograd::grad({y}, {x, weight, bias}, {begin});
  return {y.detach(), gradients[0], gradients[1], gradients[2]};
}

void expect_close(at::Tensor const& own, at::Tensor const& expected, double tolerance) {
  ASSERT_EQ(own.sizes(), expected.sizes());
  auto const scale = std::max(expected.abs().max().item<double>(), 1.0);
  EXPECT_LE((own - expected).abs().max().item<double>(), tolerance * scale);
}

TEST(Convolution, OfSmallMapsIsLibTorchs) {
  at::manual_seed(1);
  int small = 0;
  for (auto const& each : cases()) {
    SCOPED_TRACE(str("in ", each.in, " out ", each.out, " groups ", each.groups, " kernel ",
                     each.kernel, " stride ", each.stride, " padding ", each.padding, " map ",
                     each.height, "x", each.width));
    if (each.height + 2 * each.padding < each.kernel || each.width + 2 * each.padding < each.kernel)
      continue;
    for (auto const format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      auto const leaf = [&](at::IntArrayRef sizes) {
        return at::randn(sizes, at::kDouble).contiguous(format).requires_grad_();
      };
      auto const x = leaf({3, each.in, each.height, each.width});
      auto const weight = leaf({each.out, each.in / each.groups, each.kernel, each.kernel});
      auto const bias = at::randn({each.out}, at::kDouble).requires_grad_();
      Window const window{each.stride, each.padding, each.groups};
      small += is_of_small_maps(x, weight, window) ? 1 : 0;
      auto const own_way = [&](bool fused) {
        return results_of(x, weight, bias,
                          [&] { return convolve(x, weight, bias, window, fused); });
      };
      auto const own = own_way(true), off = own_way(false);
      auto const theirs = results_of(x, weight, bias, [&] {
        return at::conv2d(x, weight, bias, each.stride, each.padding, 1, each.groups);
      });
      expect_close(own.y, theirs.y, 1e-13);
      expect_close(own.of_x, theirs.of_x, 1e-13);
      expect_close(own.of_weight, theirs.of_weight, 1e-13);
      expect_close(own.of_bias, theirs.of_bias, 1e-13);
      EXPECT_TRUE(at::equal(off.y, theirs.y) && at::equal(off.of_weight, theirs.of_weight));
      at::NoGradGuard const evaluation;
      EXPECT_TRUE(at::equal(convolve(x, weight, bias, window, true), own.y));
      EXPECT_TRUE(at::equal(convolve(x, weight, bias, window, false), theirs.y));
    }
  }
  EXPECT_GT(small, 300);
}

double distance(at::Tensor const& own, at::Tensor const& exact) {
  return (own.to(at::kDouble) - exact).norm().item<double>();
}

/// The distance to fp64, of results and gradients, is at most so many times that of LibTorch's own.
void expect_as_accurate(at::ScalarType type, double times) {
  at::manual_seed(2);
  for (auto const& [channels, groups, kernel, edge] :
       {std::tuple{256, 1, 3, 1}, {256, 1, 3, 2}, {512, 1, 1, 4}, {192, 192, 7, 8}}) {
    auto const wide_x = at::randn({16, channels, edge, edge}, at::kDouble);
    auto const wide_weight = at::randn({channels, channels / groups, kernel, kernel}, at::kDouble);
    auto const errors = [&](auto const& convolution) {
      auto const x = wide_x.to(type).requires_grad_();
      auto const weight = wide_weight.to(type).requires_grad_();
      auto const bias = at::zeros({channels}, type).requires_grad_();
      auto const exact_x = x.detach().to(at::kDouble).requires_grad_();
      auto const exact_weight = weight.detach().to(at::kDouble).requires_grad_();
      auto const exact_bias = at::zeros({channels}, at::kDouble).requires_grad_();
      auto const own = results_of(x, weight, bias, [&] { return convolution(x, weight, bias); });
      auto const exact = results_of(exact_x, exact_weight, exact_bias, [&] {
        return at::conv2d(exact_x, exact_weight, exact_bias, 1, kernel / 2, 1, groups);
      });
      EXPECT_EQ(own.y.scalar_type(), type);
      return std::array{distance(own.y, exact.y), distance(own.of_x, exact.of_x),
                        distance(own.of_weight, exact.of_weight),
                        distance(own.of_bias, exact.of_bias)};
    };
    auto const own = errors([&](auto const&... given) {
      return convolve(given..., {1, kernel / 2, groups}, true);
    });
    auto const theirs = errors(
        [&](auto const&... given) { return at::conv2d(given..., 1, kernel / 2, 1, groups); });
    for (std::size_t i = 0; i < own.size(); ++i)
      EXPECT_LE(own[i], times * theirs[i])
          << "kernel " << kernel << ", map of " << edge << ", result " << i;
  }
}

TEST(Convolution, OfSmallMapsIsAsAccurateInSinglePrecision) {
  expect_as_accurate(at::kFloat, 2);
}

/// Sums are wide, and rounded once.
TEST(Convolution, OfSmallMapsIsAsAccurateInBf16) {
  expect_as_accurate(at::kBFloat16, 1.1);
}

TEST(Convolution, WhatIsNoSmallMapIsLibTorchs) {
  auto const of = [](at::IntArrayRef x, at::IntArrayRef weight, Window const& window,
                     at::ScalarType type = at::kFloat) {
    return is_of_small_maps(at::zeros(x, type), at::zeros(weight, type), window);
  };
  EXPECT_TRUE(of({2, 8, 2, 2}, {8, 8, 3, 3}, {1, 1, 1}));
  EXPECT_FALSE(of({2, 8, 3, 2}, {8, 8, 3, 3}, {1, 1, 1})) << "larger than products pay";
  EXPECT_TRUE(of({2, 8, 4, 4}, {8, 8, 1, 1}, {1, 0, 1}));
  EXPECT_TRUE(of({2, 8, 8, 8}, {8, 1, 7, 7}, {1, 3, 8})) << "depthwise";
  EXPECT_FALSE(of({2, 8, 1, 1}, {8, 2, 3, 3}, {1, 1, 4})) << "groups";
  EXPECT_FALSE(of({2, 8, 1, 1}, {16, 1, 3, 3}, {1, 1, 8})) << "several outputs of a channel";
  EXPECT_FALSE(of({2, 8, 2, 2}, {8, 8, 3, 1}, {1, 1, 1})) << "no square";
  EXPECT_FALSE(of({2, 8, 2, 2}, {8, 8, 5, 5}, {1, 1, 1})) << "no output";
  EXPECT_TRUE(of({2, 8, 2, 2}, {8, 8, 3, 3}, {1, 1, 1}, at::kBFloat16));
  EXPECT_FALSE(of({2, 8, 2, 2}, {8, 8, 3, 3}, {1, 1, 1}, at::kHalf));
  EXPECT_FALSE(of({0, 8, 2, 2}, {8, 8, 3, 3}, {1, 1, 1})) << "no sample";
}

/// A convolution with bias and an activation in place.
class Layer final : public Block {
 public:
  Layer()
      : Block("layer"),
        conv_(declare_, "conv", {.in = 6, .out = 5, .kernel = 3, .padding = 1, .bias = true},
              kaiming_normal(54)) {}
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return conv_(x, frame).relu_();
  }

 private:
  Conv2d conv_;
};

TEST(Convolution, GradientsLandWhereTheyAreWanted) {
  Blocks blocks;
  blocks.push_back(std::make_unique<Layer>());
  Context const context{.training = true};
  test::State const state(blocks, at::kDouble);
  auto const frame = state.frame(0, context);
  auto const x = at::randn({4, 6, 2, 2}, at::kDouble), begin = at::randn({4, 5, 2, 2}, at::kDouble);
  auto const whole = at::relu(at::conv2d(x, frame.parameters[0], frame.parameters[1], 1, 1));
  auto const expected =
      torch::autograd::grad({whole}, {frame.parameters[0], frame.parameters[1]}, {begin});
  for (auto const format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    test::OnePass tape(blocks);
    std::vector<at::Tensor> const places{
        at::full({5, 6, 3, 3}, 7.0, at::kDouble).contiguous(format),
        at::full({5}, 7.0, at::kDouble)};
    for (auto const write : {GradWrite::overwrite, GradWrite::accumulate}) {
      tape.forward(0, x, frame);
      tape.backward(0, begin, places, write);
      auto const times = write == GradWrite::overwrite ? 1 : 2;
      for (std::size_t i = 0; i < places.size(); ++i)
        expect_close(places[i], times * expected[i], 1e-13);
    }
  }
}

}  // namespace
}  // namespace stratagem
