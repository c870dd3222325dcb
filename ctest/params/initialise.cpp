#include "params/initialise.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace stratagem {
namespace {

at::Tensor initialised(ParameterSpec const& spec, std::uint64_t seed = 1) {
  auto const tensor = at::empty(spec.shape);
  initialise(tensor, spec, seed);
  return tensor;
}

TEST(Initialise, APartHoldsWhatTheWholeHoldsThere) {
  for (auto const& kind : {Initialiser::uniform(0.3), Initialiser::normal(0.7),
                           Initialiser::truncated_normal(0.5, 0.6)}) {
    auto const whole = initialised({"w", {19, 7}, kind});
    for (std::int64_t const begin : {0, 3, 11}) {
      auto const rows = std::min<std::int64_t>(8, 19 - begin);
      auto const part = initialised({"w", {rows, 7}, kind, false, begin, 19});
      EXPECT_TRUE(part.equal(whole.narrow(0, begin, rows))) << begin;
    }
  }
}

TEST(Initialise, DependsOnSeedAndNameAlone) {
  ParameterSpec const spec{"layer.weight", {300, 401}, Initialiser::normal(1)};
  auto const values = initialised(spec);
  at::set_num_threads(2);
  EXPECT_TRUE(initialised(spec).equal(values));
  at::set_num_threads(1);
  EXPECT_FALSE(initialised(spec, 2).equal(values));
  auto renamed = spec;
  renamed.name = "layer.bias";
  EXPECT_FALSE(initialised(renamed).equal(values));
}

TEST(Initialise, GoesByLogicalOrderWhateverStridesAndType) {
  ParameterSpec const spec{"w", {4, 3, 5, 5}, Initialiser::uniform(1)};
  auto const values = initialised(spec);
  auto const strided = at::empty(spec.shape).contiguous(at::MemoryFormat::ChannelsLast);
  initialise(strided, spec, 1);
  EXPECT_TRUE(strided.equal(values));
  auto const wide = at::empty(spec.shape, at::kDouble);
  initialise(wide, spec, 1);
  EXPECT_TRUE(wide.to(at::kFloat).equal(values));
}

/// Moments of 10^5 draws are within 5 standard errors of the distribution's.
TEST(Initialise, DrawsTheDistributionsAskedFor) {
  std::int64_t const count = 100'000;
  auto draw = [&](Initialiser const& kind) {
    return initialised({"w", {count}, kind}).to(at::kDouble);
  };
  double const error = 5 / std::sqrt(static_cast<double>(count));

  auto const uniform = draw(Initialiser::uniform(2));
  EXPECT_GE(uniform.min().item<double>(), -2);
  EXPECT_LT(uniform.max().item<double>(), 2);
  EXPECT_NEAR(uniform.mean().item<double>(), 0, error * 2 / std::sqrt(3));
  EXPECT_NEAR(uniform.square().mean().item<double>(), 4.0 / 3, error * 4 * std::sqrt(4.0 / 45));

  auto const normal = draw(Initialiser::normal(0.5)) / 0.5;
  EXPECT_NEAR(normal.mean().item<double>(), 0, error);
  EXPECT_NEAR(normal.square().mean().item<double>(), 1, error * std::sqrt(2));
  EXPECT_NEAR(normal.pow(4).mean().item<double>(), 3, error * std::sqrt(96));

  auto const truncated = draw(Initialiser::truncated_normal(1, 2));
  EXPECT_LE(truncated.abs().max().item<double>(), 2);
  EXPECT_NEAR(truncated.square().mean().item<double>(), 0.77374, error);

  EXPECT_TRUE(draw(Initialiser::constant(3)).eq(3).all().item<bool>());
}

TEST(Initialise, PaddingBecomesZero) {
  ParameterLayout const layout(
      {{{"a", {5}, Initialiser::constant(1)}}, {{"b", {3, 3}, Initialiser::constant(1)}}}, false);
  auto const flat = at::full({layout.size()}, std::nan(""));
  initialise(flat, layout, 1);
  EXPECT_EQ(flat.sum().item<float>(), 5 + 9);
}

}  // namespace
}  // namespace stratagem
