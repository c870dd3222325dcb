#include "model/fused/batch_norm.hpp"

#include <cmath>
#include <stdexcept>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gpu/layers/batch_norm.hpp"
#include "model/numbers.hpp"

namespace stratagem {
namespace {

using test::distance;
using test::random;

struct Case {
  std::int64_t samples, channels, edge;
  Activation activation;
  bool added = false;

  bool one_slice() const {
    return gpu::ColumnSums({samples * edge * edge, channels, gpu::Element::fp32}).one_slice;
  }
};

// In one slice and in several, the last of which is shorter; more channels than a block has. The
// CPU's own slices have 256 rows, which it adds up by fours.
Case const cases[]{
    {2, 4, 1, Activation::none},        {8, 20, 3, Activation::relu},
    {8, 20, 3, Activation::relu, true}, {8, 20, 3, Activation::silu},
    {8, 20, 3, Activation::none, true}, {5, 36, 32, Activation::relu, true},
    {5, 36, 32, Activation::silu},      {33, 4, 8, Activation::relu},
    {3, 68, 11, Activation::silu},      {4, 20, 8, Activation::none},
};

struct Result {
  at::Tensor y, running_mean, running_var;
  std::vector<at::Tensor> gradients;  ///< of x, weight, bias, and of what was added

  std::vector<at::Tensor> all() const {
    auto every = gradients;
    every.insert(every.end(), {y, running_mean, running_var});
    return every;
  }
};

/// Maps in `type`, computed as told.
template <class Norm>
Result run(Case const& it, at::ScalarType type, at::ScalarType of_parameters, Norm const& norm) {
  auto const maps = [&](std::string const& name) {
    auto const values = random(name, {it.samples, it.channels, it.edge, it.edge});
    return values.to(at::kBFloat16).to(type).contiguous(at::MemoryFormat::ChannelsLast);
  };
  auto const of_channels = [&](std::string const& name) {
    return random(name, {it.channels}).to(of_parameters);
  };
  // A mean far from 0, whose square would drown the variance.
  auto const x = (3 * maps("x") + 50).requires_grad_();
  auto const added = it.added ? maps("added").requires_grad_() : at::Tensor();
  BatchNormOf const of{.weight = of_channels("weight").requires_grad_(),
                       .bias = of_channels("bias").requires_grad_(),
                       .running_mean = of_channels("mean"),
                       .running_var = of_channels("var").abs(),
                       .eps = 1e-3,
                       .momentum = 0.1,
                       .activation = it.activation};
  std::vector<at::Tensor> wanted{x, of.weight, of.bias};
  if (it.added) wanted.push_back(added);
  auto const y = norm(x, added, of);
  auto const gradients = torch::autograd::grad({y}, wanted, {maps("gradient")});
  return {y.detach(), of.running_mean, of.running_var, gradients};
}

auto const own = [](at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of) {
  return fused_batch_norm(x, added, of);
};
auto const twins = [](at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of) {
  return fused_batch_norm(x, added, of, NormKernels::twins);
};
auto const stock = [](at::Tensor const& x, at::Tensor const& added, BatchNormOf const& of) {
  return batch_norm(x, added, of, /*training=*/true, /*fused=*/false);
};

TEST(BatchNorm, FusedOneIsNoFartherFromDoublesThanTwiceTheStockOne) {
  for (auto const& it : cases) {
    SCOPED_TRACE(testing::Message() << it.samples << " " << it.channels << " " << it.edge);
    auto const exact = run(it, at::kDouble, at::kDouble, stock).all();
    auto const plain = run(it, at::kFloat, at::kFloat, stock).all();
    for (auto const& fused : {run(it, at::kFloat, at::kFloat, own).all(),
                              run(it, at::kFloat, at::kFloat, twins).all()}) {
      ASSERT_EQ(fused.size(), exact.size());
      for (std::size_t i = 0; i < exact.size(); ++i)
        EXPECT_LE(distance(fused[i], exact[i]), 2 * distance(plain[i], exact[i]) + 3e-7) << i;
    }
  }
}

TEST(BatchNorm, FusedOneOf16BitMapsRoundsOnce) {
  for (auto const type : {at::kBFloat16, at::kHalf})
    for (auto const& it : cases) {
      SCOPED_TRACE(testing::Message() << it.samples << " " << it.channels << " " << it.edge);
      auto const exact = run(it, at::kDouble, at::kDouble, stock).all();
      auto const plain = run(it, type, at::kFloat, stock).all();
      auto const fused = run(it, type, at::kFloat, twins).all();
      for (std::size_t i = 0; i < exact.size(); ++i)
        EXPECT_LE(distance(fused[i], exact[i]), 1.1 * distance(plain[i], exact[i]) + 3e-7) << i;
    }
}

/// Whatever threads there are, slices are added up in the same order.
TEST(BatchNorm, ThreadsDoNotChangeBits) {
  int const before = at::get_num_threads();
  for (auto const& it : cases) {
    std::vector<std::vector<at::Tensor>> results;
    for (int const threads : {1, 3}) {
      at::set_num_threads(threads);
      results.push_back(run(it, at::kFloat, at::kFloat, own).all());
    }
    for (std::size_t i = 0; i < results[0].size(); ++i)
      EXPECT_TRUE(results[0][i].equal(results[1][i])) << i;
  }
  at::set_num_threads(before);
}

/// What is not finite stays so: it would be refused later.
TEST(BatchNorm, OwnOneKeepsNaN) {
  auto const x = at::ones({2, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  x[1][2][0][0] = std::nanf("");
  BatchNormOf const of{at::ones({4}), at::zeros({4}),  at::zeros({4}), at::ones({4}), 1e-5,
                       0.1,           Activation::relu};
  auto const y = fused_batch_norm(x, {}, of);
  EXPECT_TRUE(y.select(1, 2).isnan().all().item<bool>());
  EXPECT_FALSE(y.select(1, 1).isnan().any().item<bool>());
}

TEST(BatchNorm, SlicesAreTried) {
  EXPECT_TRUE(cases[0].one_slice());
  EXPECT_FALSE(cases[5].one_slice());
}

TEST(BatchNorm, FusedOneWithoutGradientsIsTheSame) {
  Case const it{8, 20, 3, Activation::relu, true};
  auto const without =
      run(it, at::kFloat, at::kFloat, [](auto const& x, auto const& added, auto const& of) {
        at::Tensor y;
        auto copy = of;
        copy.running_mean = of.running_mean.clone();
        copy.running_var = of.running_var.clone();
        {
          at::NoGradGuard const no_grad;
          y = fused_batch_norm(x, added, copy);
        }
        auto const again = fused_batch_norm(x, added, of);
        EXPECT_TRUE(y.equal(again.detach()));
        EXPECT_TRUE(copy.running_var.equal(of.running_var));
        return again;
      });
  EXPECT_TRUE(without.y.defined());
}

TEST(BatchNorm, FusedOneRefusesMapsThatDoNotSuit) {
  BatchNormOf const of{at::ones({6}), at::zeros({6}),  at::zeros({6}), at::ones({6}), 1e-5,
                       0.1,           Activation::none};
  EXPECT_THROW(fused_batch_norm(at::ones({2, 6, 2, 2}), {}, of), std::logic_error);
  auto const halves =
      at::ones({2, 8, 2, 2}).to(at::kHalf).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_THROW(fused_batch_norm(halves, {}, of), std::logic_error);
}

}  // namespace
}  // namespace stratagem
