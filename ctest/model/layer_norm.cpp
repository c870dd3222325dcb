#include "model/fused/layer_norm.hpp"

#include <stdexcept>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/numbers.hpp"

namespace stratagem {
namespace {

using test::distance;
using test::random;

/// Result, and gradients of x, weight and bias.
template <class Norm>
std::vector<at::Tensor> run(at::IntArrayRef sizes, at::ScalarType type, Norm const& norm) {
  auto const of_parameters = type == at::kDouble ? at::kDouble : at::kFloat;
  auto const rows = [&](std::string const& name) {
    return random(name, sizes).to(at::kBFloat16).to(type);
  };
  auto const parameter = [&](std::string const& name) {
    return random(name, sizes.back()).to(of_parameters).requires_grad_();
  };
  auto const x = (3 * rows("x") + 20).requires_grad_();
  auto const weight = parameter("weight"), bias = parameter("bias");
  auto const y = norm(x, weight, bias);
  auto results = torch::autograd::grad({y}, {x, weight, bias}, {rows("gradient")});
  results.push_back(y.detach());
  return results;
}

/// Rows of fewer and of more vectors than a warp has threads; columns in one slice and in several.
TEST(LayerNorm, FusedOneIsNoFartherFromDoublesThanTwiceTheStockOne) {
  auto const stock = [](auto const& x, auto const& weight, auto const& bias) {
    return layer_norm(x, weight, bias, 1e-5, /*fused=*/false);
  };
  auto const own = [](auto const& x, auto const& weight, auto const& bias) {
    return fused_layer_norm(x, weight, bias, 1e-5);
  };
  for (auto const& sizes : {std::vector<std::int64_t>{2, 4}, {3, 7, 36}, {5, 200}, {5, 1000, 12}})
    for (auto const type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      auto const exact = run(sizes, at::kDouble, stock);
      auto const plain = run(sizes, type, stock), fused = run(sizes, type, own);
      for (std::size_t i = 0; i < exact.size(); ++i)
        EXPECT_LE(distance(fused[i], exact[i]), 2 * distance(plain[i], exact[i]) + 3e-7)
            << i << " of " << sizes << " " << type;
    }
}

TEST(LayerNorm, FusedOneRefusesRowsThatDoNotSuit) {
  EXPECT_THROW(fused_layer_norm(at::ones({2, 6}), at::ones({6}), at::zeros({6}), 1e-5),
               std::logic_error);
}

}  // namespace
}  // namespace stratagem
