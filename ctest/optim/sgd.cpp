#include "optim/sgd/sgd.hpp"

#include <cmath>
#include <stdexcept>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "params/initialise.hpp"

namespace stratagem {
namespace {

// Three times what one thread takes at least, and no multiple of any vector's length.
constexpr std::int64_t elements = 3 * (1 << 16) + 13;

at::Tensor random_values(std::string const& name, at::ScalarType type = at::kFloat) {
  auto const values = at::empty({elements}, type);
  initialise(values, {name, {elements}, Initialiser::normal(1)}, 1);
  return values;
}

OptimizerConfig const rules[]{
    {.rule = SgdConfig{.momentum = 0}},
    {.weight_decay = 0.01, .rule = SgdConfig{.momentum = 0}},
    {},
    {.weight_decay = 0.01},
    {.weight_decay = 0.01, .rule = SgdConfig{.nesterov = true}},
};
SgdConfig of(OptimizerConfig const& rule) {
  return std::get<SgdConfig>(rule.rule);
}

Sgd make(OptimizerConfig const& rule, std::int64_t size, at::ScalarType type = at::kFloat) {
  return {of(rule), rule, {.size = size}, type};
}

/// Undefined where there is none.
at::Tensor momentum_of(Sgd const& sgd) {
  return sgd.state().empty() ? at::Tensor() : sgd.state().front().second;
}

constexpr double lr = 0.1, scale = 0.25;
constexpr int steps = 3;

/// PyTorch's rule (torch.optim.SGD without dampening), one operation at a time.
at::Tensor by_torch(OptimizerConfig const& rule) {
  auto p = random_values("p", at::kDouble);
  at::Tensor m;
  for (int step = 0; step < steps; ++step) {
    auto d = random_values("g" + std::to_string(step), at::kDouble) * scale;
    if (rule.weight_decay != 0) d = d.add(p, rule.weight_decay);
    if (auto const& [momentum, nesterov] = of(rule); momentum != 0) {
      m = m.defined() ? m.mul(momentum).add(d) : d.clone();
      d = nesterov ? d.add(m, momentum) : m;
    }
    p = p.add(d, -lr);
  }
  return p;
}

struct Result {
  at::Tensor parameters, momentum;
};

/// The same with Sgd, over consecutive ranges that end at `cuts`.
Result by_sgd(OptimizerConfig const& rule, std::vector<std::int64_t> cuts,
              at::ScalarType type = at::kFloat) {
  auto const p = random_values("p", type);
  auto sgd = make(rule, elements, type);
  cuts.push_back(elements);
  for (int step = 0; step < steps; ++step) {
    auto const g = random_values("g" + std::to_string(step), type);
    std::int64_t begin = 0;
    for (auto const end : cuts) {
      sgd.update({begin, end}, p.narrow(0, begin, end - begin), g.narrow(0, begin, end - begin), lr,
                 scale);
      begin = end;
    }
  }
  return {p, momentum_of(sgd)};
}

TEST(Sgd, FollowsTorchsRule) {
  for (auto const& rule : rules) {
    auto const expected = by_torch(rule);
    auto const narrow = by_sgd(rule, {}).parameters.to(at::kDouble);
    EXPECT_LT((narrow - expected).abs().max().item<double>(), 2e-6);
    auto const wide = by_sgd(rule, {}, at::kDouble).parameters;
    EXPECT_LT((wide - expected).abs().max().item<double>(), 4e-15);
  }
}

TEST(Sgd, DoesNotDependOnCutsOrThreads) {
  for (auto const& rule : rules) {
    auto const whole = by_sgd(rule, {});
    for (int const threads : {1, 2}) {
      at::set_num_threads(threads);
      auto const cut = by_sgd(rule, {0, 1, 17, 1000, (1 << 16) + 5, 2 * (1 << 16) - 1});
      at::set_num_threads(1);
      EXPECT_TRUE(cut.parameters.equal(whole.parameters)) << threads;
      EXPECT_TRUE(of(rule).momentum == 0 || cut.momentum.equal(whole.momentum)) << threads;
    }
  }
}

TEST(Sgd, TouchesItsRangeOnly) {
  auto const p = random_values("p");
  auto const before = p.clone();
  auto sgd = make({}, elements);
  sgd.update({10, 20}, p.narrow(0, 10, 10), random_values("g").narrow(0, 10, 10), lr, scale);
  EXPECT_TRUE(p.ne(before).nonzero().flatten().equal(at::arange(10, 20)));
  EXPECT_TRUE(momentum_of(sgd).nonzero().flatten().equal(at::arange(10, 20)));
}

TEST(Sgd, KeepsNoMomentumWhereThereIsNone) {
  EXPECT_FALSE(by_sgd({.rule = SgdConfig{.momentum = 0}}, {}).momentum.defined());
  EXPECT_EQ(by_sgd({}, {}).momentum.numel(), elements);
}

TEST(Sgd, RefusesGradientsUnlikeTheParameters) {
  auto sgd = make({}, 4);
  auto const p = at::zeros({2});
  EXPECT_THROW(sgd.update({0, 2}, p, at::zeros({2}, at::kDouble), lr, 1), std::logic_error);
  EXPECT_THROW(sgd.update({0, 2}, p, at::zeros({3}), lr, 1), std::logic_error);
  EXPECT_THROW(sgd.update({0, 3}, p, at::zeros({2}), lr, 1), std::logic_error);
}

/// Subnormal numbers would take a processor a hundred times as long.
TEST(Sgd, MomentumWithoutGradientsEndsBeforeItIsSubnormal) {
  for (auto const type : {at::kFloat, at::kDouble})
    for (bool const nesterov : {false, true}) {
      constexpr std::int64_t few = 1013;
      auto sgd = make({.rule = SgdConfig{.momentum = 0.5, .nesterov = nesterov}}, few, type);
      auto const p = random_values("p", type).narrow(0, 0, few);
      auto const g = random_values("g", type).narrow(0, 0, few);
      sgd.update({0, few}, p, g, lr, 1);
      g.zero_();
      auto const smallest = type == at::kFloat ? 1.2e-38 : 2.3e-308;
      int steps = 0;
      for (; momentum_of(sgd).any().item<bool>() && steps < 1200; ++steps) {
        sgd.update({0, few}, p, g, lr, 1);
        auto const size = momentum_of(sgd).abs();
        ASSERT_FALSE(size.gt(0).logical_and(size.lt(smallest)).any().item<bool>()) << steps;
        if (steps == 60) {
          EXPECT_TRUE(momentum_of(sgd).any().item<bool>()) << "1e-18 is not nothing";
        }
      }
      EXPECT_LT(steps, 1200) << "it has not ended";
    }
}

/// Wherever it is, and whatever else is a number.
TEST(Sgd, OneGradientThatIsNotFiniteIsNoticed) {
  for (auto const type : {at::kFloat, at::kDouble})
    for (auto const& rule : rules)
      for (std::int64_t const where : {std::int64_t{0}, std::int64_t{1} << 16, elements - 1})
        for (double const value : std::initializer_list<double>{INFINITY, -INFINITY, NAN}) {
          auto sgd = make(rule, elements, type);
          auto const p = random_values("p", type), g = random_values("g", type);
          sgd.update({0, elements}, p, g, lr, scale);
          EXPECT_TRUE(sgd.finite());
          g[where].fill_(value);
          sgd.update({0, elements}, p, g, lr, scale);
          EXPECT_FALSE(sgd.finite()) << value << " at " << where;
        }
}

}  // namespace
}  // namespace stratagem
