#include "model/fused/bias_relu.hpp"

#include <stdexcept>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace stratagem {
namespace {

at::Tensor values(at::IntArrayRef sizes, double rate, at::ScalarType type) {
  std::int64_t count = 1;
  for (auto const size : sizes) count *= size;
  auto const all = at::arange(count, at::kDouble).mul_(rate).sin_().view(sizes).to(type);
  return all.dim() == 4 ? all.contiguous(at::MemoryFormat::ChannelsLast) : all;
}

struct Result {
  at::Tensor y, of_x, of_bias;
};

/// After a product with 2: what it returns may be overwritten.
template <class Layer>
Result run(at::IntArrayRef sizes, at::ScalarType type, Layer const& layer) {
  auto const x = values(sizes, 0.37, type).requires_grad_();
  auto const bias = values({sizes[1]}, 0.3, type).requires_grad_();
  auto const y = layer(x * 2, bias);
  auto const gradients = torch::autograd::grad({y}, {x, bias}, {values(sizes, 0.77, type)});
  return {y.detach(), gradients[0], gradients[1]};
}

auto const stock = [](at::Tensor const& y, at::Tensor const& bias) {
  return bias_relu(y, bias, /*fused=*/false);
};

TEST(BiasRelu, FusedOneIsTheStockOne) {
  for (auto const type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (auto const& sizes :
         {std::vector<std::int64_t>{2, 4, 1, 1}, {8, 20, 3, 3}, {5, 36, 32, 32}}) {
      auto const plain = run(sizes, type, stock), fused = run(sizes, type, fused_bias_relu);
      auto const exact = run(sizes, at::kDouble, stock);
      EXPECT_TRUE(type != at::kFloat || fused.y.equal(plain.y));
      EXPECT_TRUE(type != at::kFloat || fused.of_x.equal(plain.of_x));
      auto const eps = type == at::kFloat ? 1e-5 : type == at::kHalf ? 3e-3 : 3e-2;
      EXPECT_TRUE(at::allclose(fused.y.to(at::kDouble), exact.y, eps, eps));
      auto const terms = fused.of_x.to(at::kDouble) / 2;  // x was doubled
      auto const apart = (fused.of_bias.to(at::kDouble) - terms.sum({0, 2, 3})).abs();
      EXPECT_TRUE(apart.le(eps * terms.abs().sum({0, 2, 3}) / 10).all().item<bool>());
    }
}

TEST(BiasRelu, FusedOneRefusesMapsThatDoNotSuit) {
  EXPECT_THROW(fused_bias_relu(at::ones({2, 6, 2, 2}), at::ones({6})), std::logic_error);
}

}  // namespace
}  // namespace stratagem
