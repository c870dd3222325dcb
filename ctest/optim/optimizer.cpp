#include "optim/optimizer.hpp"

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
constexpr double lr = 0.1, scale = 0.25;

at::Tensor random_values(std::string const& name, at::ScalarType type) {
  auto const values = at::empty({elements}, type);
  initialise(values, {name, {elements}, Initialiser::normal(1)}, 1);
  return values;
}

struct Result {
  at::Tensor parameters;
  std::vector<at::Tensor> state;
};

/// Three updates over consecutive ranges that end at `cuts`.
Result updated(OptimizerConfig const& config, std::vector<std::int64_t> cuts,
               std::vector<FlatRange> const& vectors = {}, at::ScalarType type = at::kFloat) {
  auto const p = random_values("p", type);
  auto const optimizer = make_optimizer(config, {elements, vectors}, p.options());
  cuts.push_back(elements);
  for (int step = 0; step < 3; ++step) {
    auto const g = random_values("g" + std::to_string(step), type);
    optimizer->begin_update();
    std::int64_t begin = 0;
    for (auto const end : cuts) {
      optimizer->update({begin, end}, p.narrow(0, begin, end - begin),
                        g.narrow(0, begin, end - begin), lr, scale);
      begin = end;
    }
  }
  Result result{p, {}};
  for (auto const& [_, tensor] : optimizer->state()) result.state.push_back(tensor);
  return result;
}

void expect_equal(Result const& a, Result const& b) {
  EXPECT_TRUE(a.parameters.equal(b.parameters));
  ASSERT_EQ(a.state.size(), b.state.size());
  for (std::size_t i = 0; i < a.state.size(); ++i) EXPECT_TRUE(a.state[i].equal(b.state[i])) << i;
}

/// One of each, which decays.
std::vector<OptimizerConfig> optimizers() {
  auto all = all_optimizers();
  for (auto& each : all) each.weight_decay = 0.1;
  return all;
}

TEST(Optimizer, DoesNotDependOnCutsOrThreads) {
  for (auto const& each : optimizers()) {
    auto const whole = updated(each, {});
    for (int const threads : {1, 2}) {
      SCOPED_TRACE(std::string(name_of(each)) + " " + std::to_string(threads));
      at::set_num_threads(threads);
      auto const cut = updated(each, {0, 1, 17, 1000, (1 << 16) + 5, 2 * (1 << 16) - 1});
      at::set_num_threads(1);
      expect_equal(cut, whole);
    }
  }
}

TEST(Optimizer, KeepsTheKindsThatItsConfigurationNames) {
  for (auto const& each : optimizers()) {
    auto const optimizer = make_optimizer(each, {.size = 5}, at::kDouble);
    std::vector<std::string> kinds;
    for (auto const& [kind, tensor] : optimizer->state()) {
      kinds.push_back(kind);
      EXPECT_EQ(tensor.numel(), 5);
      EXPECT_EQ(tensor.scalar_type(), at::kDouble);
    }
    EXPECT_EQ(kinds, state_kinds(each));
    for (auto const& kind : kinds) {
      auto const known = known_state_kinds();
      EXPECT_EQ(std::ranges::count(known, kind), 1) << kind;
    }
  }
}

/// The same as with no decay, and nowhere else; wherever ranges are cut.
TEST(Optimizer, VectorsDoNotDecayWhereOnlyWeightsDo) {
  std::vector<FlatRange> const vectors{{70000, 70001}, {100, 2000}, {2000, 2013}};
  for (auto each : optimizers()) {
    SCOPED_TRACE(name_of(each));
    auto const decayed = updated(each, {}).parameters;
    EXPECT_TRUE(updated(each, {}, vectors).parameters.equal(decayed)) << "all decay";
    each.decay = Decay::weights;
    auto const mixed = updated(each, {}, vectors);
    expect_equal(updated(each, {50, 1999, 2005, 70001}, vectors), mixed);
    each.weight_decay = 0;
    auto const undecayed = updated(each, {}).parameters;
    auto expected = decayed.clone();
    for (auto const& [begin, end] : vectors)
      expected.narrow(0, begin, end - begin).copy_(undecayed.narrow(0, begin, end - begin));
    EXPECT_FALSE(expected.equal(decayed));
    EXPECT_TRUE(mixed.parameters.equal(expected));
  }
}

TEST(Optimizer, RefusesGradientsUnlikeTheParameters) {
  for (auto const& each : optimizers()) {
    auto const optimizer = make_optimizer(each, {.size = 4}, at::kFloat);
    auto const p = at::zeros({2});
    EXPECT_THROW(optimizer->update({0, 2}, p, at::zeros({2}, at::kDouble), lr, 1),
                 std::logic_error);
    EXPECT_THROW(optimizer->update({0, 2}, p, at::zeros({3}), lr, 1), std::logic_error);
    EXPECT_THROW(optimizer->update({0, 3}, p, at::zeros({2}), lr, 1), std::logic_error);
  }
}

/// Wherever it is, and whatever else is a number.
TEST(Optimizer, OneGradientThatIsNotFiniteIsNoticed) {
  for (auto const type : {at::kFloat, at::kDouble})
    for (auto const& each : optimizers())
      for (std::int64_t const where : {std::int64_t{0}, std::int64_t{1} << 16, elements - 1})
        for (double const value : std::initializer_list<double>{INFINITY, -INFINITY, NAN}) {
          auto const optimizer = make_optimizer(each, {.size = elements}, type);
          auto const p = random_values("p", type), g = random_values("g", type);
          auto const update = [&] {
            optimizer->begin_update();
            optimizer->update({0, elements}, p, g, lr, scale);
          };
          update();
          EXPECT_TRUE(optimizer->finite());
          g[where].fill_(value);
          update();
          EXPECT_FALSE(optimizer->finite()) << name_of(each) << ": " << value << " at " << where;
        }
}

}  // namespace
}  // namespace stratagem
