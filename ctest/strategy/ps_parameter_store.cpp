#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "strategy/ps/parameter_store.hpp"

namespace stratagem {
namespace {

constexpr double lr = 0.1, momentum = 0.9;
OptimizerConfig const optimizer{.lr = lr, .rule = SgdConfig{.momentum = momentum}};

using Momentum = ServerPolicy::Momentum;

at::Tensor values(std::vector<double> const& list) {
  return at::tensor(list, at::kDouble);
}

ParameterStore make(ServerPolicy const& policy, int workers) {
  return {policy, optimizer, workers, values({1, 2, 3})};
}

void expect_near(at::Tensor const& a, at::Tensor const& b) {
  EXPECT_TRUE(at::allclose(a, b, 1e-14, 1e-14)) << a << "\n" << b;
}

TEST(PsParameterStore, ASumIsOneUpdate) {
  auto store = make({.gate = ServerPolicy::Gate::bsp}, 3);
  for (int worker = 0; worker < 3; ++worker) store.slot(worker).fill_(worker + 1);
  store.add_up({0, 2});
  store.apply_sum({0, 2}, lr, 1.0 / 3);
  expect_near(store.parameters(), values({1 - 0.2, 2 - 0.2, 3}));
  store.add_up({2, 3});
  store.apply_sum({2, 3}, lr, 1.0 / 3);
  expect_near(store.parameters(), values({0.8, 1.8, 2.8}));
  expect_near(store.momentum(), values({2, 2, 2}));
}

TEST(PsParameterStore, SharedMomentumIsOneOptimizer) {
  auto store = make({}, 2);
  store.slot(0).fill_(1);
  store.apply(0, {.lr = lr});
  store.slot(1).fill_(2);
  store.apply(1, {.lr = lr, .weight = 0.5});
  // m = 1, then 0.9 + 0.5 x 2.
  expect_near(store.momentum(), values({1.9, 1.9, 1.9}));
  expect_near(store.parameters(), values({1, 2, 3}) - lr * (1 + 1.9));
}

TEST(PsParameterStore, EachWorkerCanHaveItsOwnMomentum) {
  auto store = make({.momentum = Momentum::per_worker}, 2);
  for (int worker : {0, 1, 1}) {
    store.slot(worker).fill_(1);
    store.apply(worker, {.lr = lr});
  }
  expect_near(store.parameters(), values({1, 2, 3}) - lr * (1 + 1 + 1.9));
  expect_near(store.momentum(), values({2.9, 2.9, 2.9}));
}

TEST(PsParameterStore, WorkersLookAheadAlongAllMomenta) {
  auto store = make({.momentum = Momentum::look_ahead}, 2);
  for (int worker : {0, 1}) {
    store.slot(worker).fill_(worker + 1);
    store.apply(worker, {.lr = lr});
  }
  auto const parameters = values({1, 2, 3}) - lr * (1 + 2);
  store.hand_out(0, lr);
  expect_near(store.handed(0), parameters - lr * momentum * (1 + 2));
  store.hand_out(1, 0);
  expect_near(store.handed(1), parameters);
  EXPECT_TRUE(at::equal(store.handed(1), store.parameters()));
}

/// The rule as it is defined: momenta, parameters, and where all momenta lead next.
TEST(PsParameterStore, LookingAheadIsAddingUpAllMomenta) {
  constexpr int workers = 5;
  auto store = make({.momentum = Momentum::look_ahead}, workers);
  auto parameters = values({1, 2, 3});
  std::vector<at::Tensor> momenta(workers, at::zeros_like(parameters));
  for (int round = 0; round < 3; ++round) {
    store.begin_round();
    for (int worker = 0; worker < workers; ++worker) expect_near(store.handed(worker), parameters);
    for (int push = 0; push < 50; ++push) {
      auto const rate = push % 20 < 10 ? lr : lr / 3;
      auto& own = momenta[static_cast<std::size_t>(push * push % workers)];
      auto const gradient = values({std::sin(push), std::cos(push), 1.0});
      own = momentum * own + gradient;
      parameters = parameters - rate * own;
      int const worker = push * push % workers;
      store.slot(worker).copy_(gradient);
      store.apply(worker, {.lr = rate});
      store.hand_out(worker, rate);
      auto ahead = parameters.clone();
      for (auto const& each : momenta) ahead -= rate * momentum * each;
      expect_near(store.handed(worker), ahead);
    }
    store.end_round();
    expect_near(store.parameters(), parameters);
  }
}

TEST(PsParameterStore, LookAheadOfOneWorkerIsNesterov) {
  auto ahead = make({.momentum = Momentum::look_ahead}, 1);
  auto const nesterov = make_optimizer({.rule = SgdConfig{.momentum = momentum, .nesterov = true}},
                                       {.size = 3}, at::kDouble);
  // Nesterov's rule as PyTorch writes it moves the looked-ahead parameters themselves.
  auto const p = values({1, 2, 3});
  ahead.hand_out(0, lr);
  for (int i = 0; i < 10; ++i) {
    auto const gradient = ahead.handed(0) * 0.3 + i;
    ahead.slot(0).copy_(gradient);
    nesterov->update({0, 3}, p, gradient, lr, 1);
    ahead.apply(0, {.lr = lr});
    ahead.hand_out(0, lr);
    expect_near(ahead.handed(0), p);
  }
}

TEST(PsParameterStore, CompensationFollowsTheParameters) {
  auto store = make({.correction = 2}, 2);
  for (int worker : {0, 1}) store.hand_out(worker, lr);
  store.slot(0).fill_(1);
  store.apply(0, {.lr = lr});
  auto const change = store.parameters() - values({1, 2, 3});
  auto const before = store.parameters().clone();
  auto const m = store.momentum().clone();
  store.slot(1).fill_(3);
  store.apply(1, {.lr = lr});
  auto const gradient = 3 + 2 * 9 * change;
  expect_near(store.parameters(), before - lr * (momentum * m + gradient));
}

/// By its definition: lambda_0 / sqrt(mean square + 1e-7), where the mean is that of all workers'
/// gradients, the present one included.
TEST(PsParameterStore, CompensationCanFollowTheGradients) {
  constexpr double lambda = 2, decay = 0.95;
  auto store = make({.correction = lambda, .correction_decay = decay}, 2);
  auto parameters = values({1, 2, 3});
  auto mean = at::zeros_like(parameters), m = at::zeros_like(parameters);
  std::vector<at::Tensor> bases(2, parameters);
  store.begin_round();
  for (int push = 0; push < 30; ++push) {
    auto const worker = static_cast<std::size_t>(push * push % 3 % 2);
    auto const gradient = values({std::sin(push), 1e-3 * std::cos(push), 0});
    mean = decay * mean + (1 - decay) * gradient * gradient;
    auto const strength = lambda / (mean + 1e-7).sqrt();
    m = momentum * m + gradient + strength * gradient * gradient * (parameters - bases[worker]);
    parameters = parameters - lr * m;
    bases[worker] = parameters;
    store.slot(static_cast<int>(worker)).copy_(gradient);
    store.take(static_cast<int>(worker), {.lr = lr}, true);
    store.hand_out(static_cast<int>(worker), lr);
    expect_near(store.parameters(), parameters);
  }
  expect_near(store.kept().back().terms.front(), mean);
}

/// The loss scale, a mean over micro-batches and clipping are undone before anything else is made
/// of a gradient.
TEST(PsParameterStore, AFactorIsPartOfTheGradient) {
  ServerPolicy const policies[]{
      {.correction = 2, .pushes = 2},
      {.correction = 2, .correction_decay = 0.9, .pushes = 2},
      {.weight = ServerPolicy::Weight::inverse_gap, .correction = 2},
      {.gate = ServerPolicy::Gate::softsync, .count = 1, .correction = 2}};
  for (auto const& policy : policies) {
    auto plain = make(policy, 2), scaled = make(policy, 2);
    for (auto* store : {&plain, &scaled}) {
      for (int worker : {0, 1}) store->hand_out(worker, lr);
      store->parameters().add_(0.25);
    }
    plain.slot(0).fill_(3);
    plain.take(0, {.lr = lr, .weight = 0.5}, true);
    scaled.slot(0).fill_(3 * 1024);
    scaled.take(0, {.lr = lr, .weight = 0.5, .factor = 1.0 / 1024}, true);
    expect_near(scaled.parameters(), plain.parameters());
  }
}

TEST(PsParameterStore, ThePushesOfAShareCountAsOne) {
  auto store = make({.pushes = 4}, 1);
  store.slot(0).fill_(4);
  store.apply(0, {.lr = lr});
  expect_near(store.momentum(), values({1, 1, 1}));
}

TEST(PsParameterStore, WhatIsCollectedIsOneUpdateOfTheMean) {
  auto store = make({.gate = ServerPolicy::Gate::softsync, .count = 2}, 2);
  for (int round = 0; round < 2; ++round) {
    store.slot(0).fill_(1);
    store.collect(0, {.lr = 7});
    store.slot(1).fill_(4);
    store.collect(1, {.lr = lr, .weight = 0.5});
    store.apply_collected();
  }
  // (1 + 0.5 x 4) / 2, twice, with the lr of the last.
  expect_near(store.momentum(), values({1, 1, 1}) * 1.5 * (momentum + 1));
  expect_near(store.parameters(), values({1, 2, 3}) - lr * 1.5 * (1 + momentum + 1));
}

TEST(PsParameterStore, SynchronousWorkersCanLookAheadToo) {
  auto store =
      make({.gate = ServerPolicy::Gate::bsp, .momentum = Momentum::look_ahead, .delay = 1}, 2);
  for (int worker : {0, 1}) store.slot(worker).fill_(1);
  store.add_up({0, 3});
  store.apply_sum({0, 3}, lr, 0.5);
  store.publish({0, 2}, lr);
  expect_near(store.parameters(), values({0.9, 1.9, 2.9}));
  expect_near(store.outgoing(), values({0.9 - lr * momentum, 1.9 - lr * momentum, 0}));
}

/// By its definition: each element counts 1 / (1 + |change| / C), where C is the root of the mean
/// square of all updates so far.
TEST(PsParameterStore, ElementsOfAGradientCanCountByTheirGap) {
  constexpr double decay = 0.999;
  auto store = make({.weight = ServerPolicy::Weight::inverse_gap}, 3);
  auto parameters = values({1, 2, 3});
  auto square = at::zeros_like(parameters), m = at::zeros_like(parameters);
  double weight = 0;
  std::vector<at::Tensor> bases(3, parameters);
  store.begin_round();
  for (int push = 0; push < 40; ++push) {
    auto const worker = static_cast<std::size_t>(push * push % 5 % 3);
    auto const gradient = values({std::sin(push), 100 * std::cos(push), 0});
    auto const step = weight > 0 ? (square / weight).sqrt() : square;
    auto const steps = at::where(step > 0, (parameters - bases[worker]).abs() / step, 0);
    m = momentum * m + gradient / (1 + steps);
    parameters = parameters - lr * m;
    square = decay * square + (1 - decay) * (lr * m).square();
    weight = decay * weight + (1 - decay);
    bases[worker] = parameters;
    store.slot(static_cast<int>(worker)).copy_(gradient);
    store.take(static_cast<int>(worker), {.lr = lr}, true);
    store.hand_out(static_cast<int>(worker), lr);
    EXPECT_TRUE(at::allclose(store.parameters(), parameters, 1e-12, 1e-12));
  }
  EXPECT_TRUE(at::allclose(store.kept().back().terms.front(), square, 1e-9, 1e-15));
  EXPECT_NEAR(*store.counters().at("step_square_weight"), weight, 1e-15);
}

/// An update is made in pieces where it is measured.
TEST(PsParameterStore, MeasuringUpdatesChangesNone) {
  auto const n = std::int64_t{(1 << 20) + 77};
  at::manual_seed(1);
  auto const start = at::randn({n});
  ParameterStore plain({}, optimizer, 1, start.clone());
  ParameterStore measured({.weight = ServerPolicy::Weight::inverse_gap}, optimizer, 1,
                          start.clone());
  for (int push = 0; push < 3; ++push) {
    auto const gradient = at::randn({n});
    for (auto* store : {&plain, &measured}) {
      store->hand_out(0, lr);
      store->slot(0).copy_(gradient);
      store->take(0, {.lr = lr}, true);
    }
  }
  EXPECT_TRUE(at::equal(measured.parameters(), plain.parameters()));
}

TEST(PsParameterStore, TheGapIsWhatOthersChanged) {
  auto store = make({}, 2);
  store.hand_out(0, lr);
  EXPECT_EQ(store.gap(0), 0);
  store.slot(1).fill_(5);
  store.apply(1, {.lr = lr});
  EXPECT_NEAR(store.gap(0), 0.5, 1e-14);
}

TEST(PsParameterStore, UpdatesDoNotDependOnTheCut) {
  auto const n = std::int64_t{200'003};
  at::manual_seed(1);
  auto const start = at::randn({n}), gradient = at::randn({n});
  ParameterStore whole({.gate = ServerPolicy::Gate::bsp}, optimizer, 3, start.clone());
  ParameterStore cut({.gate = ServerPolicy::Gate::bsp}, optimizer, 3, start.clone());
  for (auto* store : {&whole, &cut})
    for (int worker = 0; worker < 3; ++worker) store->slot(worker).copy_(gradient * (worker + 1));
  auto const update = [](ParameterStore& store, FlatRange range) {
    store.add_up(range);
    store.apply_sum(range, lr, 1.0 / 3);
  };
  update(whole, {0, n});
  for (std::int64_t begin = 0; begin < n; begin += 7777)
    update(cut, {begin, std::min(begin + 7777, n)});
  EXPECT_TRUE(at::equal(whole.parameters(), cut.parameters()));
}

}  // namespace
}  // namespace stratagem
