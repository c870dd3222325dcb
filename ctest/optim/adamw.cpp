#include "optim/adamw/adamw.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "params/initialise.hpp"

namespace stratagem {
namespace {

// Three times what one thread takes at least, and no multiple of any vector's length.
constexpr std::int64_t elements = 3 * (1 << 16) + 13;
constexpr double lr = 0.01, scale = 0.25;
constexpr int steps = 5;

at::Tensor random_values(std::string const& name, at::ScalarType type = at::kFloat) {
  auto const values = at::empty({elements}, type);
  initialise(values, {name, {elements}, Initialiser::normal(1)}, 1);
  return values;
}

at::Tensor gradients(int step, at::ScalarType type = at::kFloat) {
  return random_values("g" + std::to_string(step), type);
}

OptimizerConfig const configs[]{
    {.rule = AdamwConfig{}},
    {.weight_decay = 0.1, .rule = AdamwConfig{}},
    {.weight_decay = 0.1, .rule = AdamwConfig{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-4}},
    {.rule = AdamwConfig{.beta1 = 0, .beta2 = 0}},
};

Adamw make(OptimizerConfig const& config, std::int64_t size, at::ScalarType type = at::kFloat) {
  return {std::get<AdamwConfig>(config.rule), config, {.size = size}, type};
}

struct Values {
  at::Tensor parameters, mean, square;
};

/// The rule in float64, an element at a time.
Values by_hand(OptimizerConfig const& config) {
  auto const& [beta1, beta2, eps] = std::get<AdamwConfig>(config.rule);
  Values values{random_values("p", at::kDouble), at::zeros({elements}, at::kDouble),
                at::zeros({elements}, at::kDouble)};
  auto* p = values.parameters.data_ptr<double>();
  auto* m = values.mean.data_ptr<double>();
  auto* v = values.square.data_ptr<double>();
  for (int step = 0; step < steps; ++step) {
    auto const tensor = gradients(step, at::kDouble);
    auto const* of_step = tensor.data_ptr<double>();
    for (std::int64_t i = 0; i < elements; ++i) {
      double const g = scale * of_step[i];
      p[i] -= lr * config.weight_decay * p[i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      double const mean = m[i] / (1 - std::pow(beta1, step + 1));
      double const square = v[i] / (1 - std::pow(beta2, step + 1));
      p[i] -= lr * mean / (std::sqrt(square) + eps);
    }
  }
  return values;
}

Values by_adamw(OptimizerConfig const& config, at::ScalarType type) {
  auto const p = random_values("p", type);
  auto adamw = make(config, elements, type);
  for (int step = 0; step < steps; ++step) {
    adamw.begin_update();
    adamw.update({0, elements}, p, gradients(step, type), lr, scale);
  }
  return {p, adamw.state()[0].second, adamw.state()[1].second};
}

double difference(at::Tensor const& a, at::Tensor const& b) {
  return (a.to(at::kDouble) - b).abs().max().item<double>();
}

TEST(Adamw, FollowsTheRule) {
  for (auto const& config : configs) {
    auto const expected = by_hand(config);
    auto const wide = by_adamw(config, at::kDouble), narrow = by_adamw(config, at::kFloat);
    EXPECT_LT(difference(wide.parameters, expected.parameters), 1e-14);
    EXPECT_LT(difference(wide.mean, expected.mean), 1e-15);
    EXPECT_LT(difference(wide.square, expected.square), 1e-15);
    EXPECT_LT(difference(narrow.parameters, expected.parameters), 3e-6);
    EXPECT_LT(difference(narrow.mean, expected.mean), 1e-6);
    EXPECT_LT(difference(narrow.square, expected.square), 1e-6);
  }
}

/// Whatever its size, the first gradient moves a parameter by the learning rate.
TEST(Adamw, TheFirstStepHasTheSizeOfTheLearningRate) {
  auto adamw = make({.rule = AdamwConfig{}}, 4, at::kDouble);
  auto const p = at::zeros({4}, at::kDouble);
  adamw.begin_update();
  adamw.update({0, 4}, p, at::tensor({1e-4, -1.0, 1e6, 0.0}, at::kDouble), lr, 1);
  EXPECT_TRUE(p.allclose(at::tensor({-lr, lr, -lr, 0.0}, at::kDouble), 1e-3, 0)) << p;
}

/// Ranges of one update count once; what was counted can be put back.
TEST(Adamw, CountsUpdates) {
  auto whole = make({.rule = AdamwConfig{}}, elements),
       cut = make({.rule = AdamwConfig{}}, elements);
  auto const p = random_values("p"), q = random_values("p");
  for (int step = 0; step < 3; ++step) {
    auto const g = gradients(step);
    whole.begin_update();
    whole.update({0, elements}, p, g, lr, 1);
    cut.begin_update();
    for (auto const& [begin, end] : {FlatRange{1000, elements}, FlatRange{0, 1000}})
      cut.update({begin, end}, q.narrow(0, begin, end - begin), g.narrow(0, begin, end - begin), lr,
                 1);
  }
  EXPECT_TRUE(p.equal(q));
  EXPECT_EQ(*whole.counters().at("optimizer_updates"), 3);
  auto again = make({.rule = AdamwConfig{}}, elements);
  *again.counters().at("optimizer_updates") = 3;
  for (std::size_t kind = 0; kind < 2; ++kind)
    again.state()[kind].second.copy_(whole.state()[kind].second);
  for (auto* each : {&whole, &again}) {
    each->begin_update();
    each->update({0, elements}, each == &whole ? p : q, gradients(3), lr, 1);
  }
  EXPECT_TRUE(p.equal(q));
}

/// What decays is the weight, whatever the gradient.
TEST(Adamw, DecayIsDecoupled) {
  auto adamw = make({.weight_decay = 0.5, .rule = AdamwConfig{}}, 2, at::kDouble);
  auto const p = at::tensor({2.0, -4.0}, at::kDouble);
  adamw.begin_update();
  adamw.update({0, 2}, p, at::zeros({2}, at::kDouble), 0.1, 1);
  EXPECT_TRUE(p.allclose(at::tensor({1.9, -3.8}, at::kDouble), 1e-15, 0)) << p;
  EXPECT_FALSE(adamw.state()[0].second.any().item<bool>());
}

/// Subnormal numbers would take a processor a hundred times as long.
TEST(Adamw, MeansWithoutGradientsEndBeforeTheyAreSubnormal) {
  constexpr std::int64_t few = 1013;
  for (auto const type : {at::kFloat, at::kDouble}) {
    auto adamw = make({.rule = AdamwConfig{.beta1 = 0.5, .beta2 = 0.5}}, few, type);
    auto const p = random_values("p", type).narrow(0, 0, few);
    auto const g = random_values("g", type).narrow(0, 0, few);
    auto const smallest = type == at::kFloat ? 1.17e-38 : 2.22e-308;
    int step = 0;
    for (bool left = true; left && step < 1200; ++step) {
      adamw.begin_update();
      adamw.update({0, few}, p, g, lr, 1);
      g.zero_();
      left = false;
      for (auto const& [kind, tensor] : adamw.state()) {
        left = left || tensor.any().item<bool>();
        auto const size = tensor.abs();
        ASSERT_FALSE(size.gt(0).logical_and(size.lt(smallest)).any().item<bool>()) << kind << step;
      }
    }
    EXPECT_LT(step, 1200) << "it has not ended";
    EXPECT_TRUE(p.isfinite().all().item<bool>());
  }
}

}  // namespace
}  // namespace stratagem
