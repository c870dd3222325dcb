#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gpu/device.hpp"
#include "optim/optimizer.hpp"
#include "params/initialise.hpp"

// Updates on a real GPU have the bits of those on the host.
namespace stratagem {
namespace {

constexpr gpu::Device device{gpu::DeviceKind::cuda, 0};
constexpr std::int64_t elements = 5 * 4096 + 13;
constexpr double lr = 0.1, scale = 0.3;
constexpr int steps = 4;

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (auto const found = gpu::availability(); found.count == 0) GTEST_SKIP() << "needs a GPU";
    gpu::select(device);
  }
};

at::Tensor random_values(std::string const& name, at::ScalarType type) {
  auto const values = at::empty({elements}, type);
  initialise(values, {name, {elements}, Initialiser::normal(1)}, 1);
  return values;
}

/// Of all sizes down to subnormal ones, and zeros.
at::Tensor gradients(int step, at::ScalarType type) {
  auto const exponents = at::arange(elements, at::kDouble).remainder(47).neg();
  auto const sizes = at::pow(at::full({}, 10.0, at::kDouble), exponents);
  auto const values = random_values("g" + std::to_string(step), at::kDouble).mul_(sizes).to(type);
  values.narrow(0, 100 * step, 100).zero_();
  return values;
}

/// On the GPU, so many elements behind an aligned place.
at::Tensor placed(at::Tensor const& values, std::int64_t offset) {
  auto const options = values.options().device(device.torch());
  return at::empty({offset + values.numel()}, options)
      .narrow(0, offset, values.numel())
      .copy_(values);
}

/// More pieces than one kernel takes, and some of several tiles.
OwnedElements owned() {
  OwnedElements owned{elements, {{15000, 20001}}};
  for (std::int64_t i = 0; i < 300; ++i) owned.vectors.push_back({20 * i + 1, 20 * i + 8 + i % 7});
  return owned;
}

std::vector<OptimizerConfig> rules() {
  std::vector<OptimizerConfig> rules;
  for (double const weight_decay : {0.0, 0.1})
    for (auto const decay : {Decay::all, Decay::weights})
      for (auto const& rule : std::initializer_list<UpdateRule>{
               SgdConfig{}, SgdConfig{.nesterov = true}, SgdConfig{.momentum = 0}, AdamwConfig{},
               AdamwConfig{.beta1 = 0.5, .beta2 = 0.6, .eps = 1e-4}})
        rules.push_back({.weight_decay = weight_decay, .decay = decay, .rule = rule});
  return rules;
}

/// The same updates on the host and on the GPU.
class Twins {
 public:
  Twins(OptimizerConfig const& config, at::ScalarType type, std::int64_t offset)
      : parameters_(random_values("p", type)),
        on_gpu_(placed(parameters_, offset)),
        host_(make_optimizer(config, owned(), parameters_.options())),
        gpu_(make_optimizer(config, owned(), on_gpu_.options())) {}

  /// Over ranges that end at `cuts`; `gradients`: of the GPU.
  void update(at::Tensor const& gradients, std::vector<std::int64_t> cuts = {},
              at::Tensor const& rounded = {}, std::optional<at::Tensor> const& refusal = {}) {
    auto const same = gradients.cpu();
    cuts.push_back(elements);
    host_->begin_update();
    gpu_->begin_update();
    std::int64_t begin = 0;
    for (auto const end : cuts) {
      auto const part = [&](at::Tensor const& of) { return of.narrow(0, begin, end - begin); };
      if (!refusal) host_->update({begin, end}, part(parameters_), part(same), lr, scale);
      gpu_->update({begin, end}, part(on_gpu_), part(gradients), lr, scale, refusal,
                   rounded.defined() ? part(rounded) : rounded);
      begin = end;
    }
  }

  at::Tensor const& on_gpu() const { return on_gpu_; }
  /// NaN is NaN, whatever its bits.
  void expect_alike() const {
    EXPECT_TRUE(alike(on_gpu_, parameters_)) << "parameters";
    for (std::size_t kind = 0; kind < host_->state().size(); ++kind)
      EXPECT_TRUE(alike(gpu_->state()[kind].second, host_->state()[kind].second)) << kind;
  }

 private:
  static bool alike(at::Tensor const& on_gpu, at::Tensor const& on_host) {
    return at::allclose(on_gpu.cpu(), on_host, 0, 0, /*equal_nan=*/true);
  }

  at::Tensor parameters_, on_gpu_;
  std::unique_ptr<Optimizer> host_, gpu_;
};

TEST_F(OnGpu, UpdatesHaveTheBitsOfTheHost) {
  for (auto const type : {at::kFloat, at::kDouble})
    for (auto const& config : rules())
      for (std::int64_t const offset : {0, 1, 6})
        for (std::int64_t const of_gradients : {0, 1, 6}) {
          SCOPED_TRACE(std::string(name_of(config)) + " " + std::to_string(offset));
          Twins twins(config, type, offset);
          for (int step = 0; step < steps; ++step) {
            auto const own = gradients(step, type);
            auto const g = placed(own, of_gradients);
            twins.update(g, {1, 18, 1000, 1000, 9001});
            EXPECT_TRUE(at::equal(g.cpu(), own)) << "gradients stay";
          }
          twins.expect_alike();
        }
}

TEST_F(OnGpu, TheCopyIsRoundedAsLibTorchDoes) {
  for (auto const type : {at::kBFloat16, at::kHalf})
    for (auto const& config : rules())
      for (std::int64_t const offset : {0, 3}) {
        Twins twins(config, at::kFloat, 0);
        auto const rounded = placed(at::zeros({elements}, type), offset);
        for (int step = 0; step < steps; ++step)
          twins.update(placed(gradients(step, at::kFloat), 0), {1, 18, 9001}, rounded);
        twins.expect_alike();
        EXPECT_TRUE(at::equal(rounded, twins.on_gpu().to(type))) << name_of(config);
      }
}

TEST_F(OnGpu, WhatIsRefusedChangesNothing) {
  for (auto const& config : rules()) {
    Twins twins(config, at::kFloat, 0);
    auto const rounded = placed(at::zeros({elements}, at::kBFloat16), 0);
    auto const g = placed(gradients(0, at::kFloat), 0);
    auto const refusal = placed(at::zeros({}), 0).reshape({});
    twins.update(g, {}, rounded);
    auto const before = rounded.clone();
    twins.update(g.mul(std::numeric_limits<float>::quiet_NaN()), {}, rounded, refusal.add(1));
    twins.expect_alike();
    EXPECT_TRUE(at::equal(rounded, before)) << name_of(config);
    auto const parameters = twins.on_gpu().clone();
    twins.update(g, {}, rounded, refusal);
    EXPECT_FALSE(at::equal(twins.on_gpu(), parameters)) << "0 does not refuse";
  }
}

TEST_F(OnGpu, WhatIsNotFinitePassesThroughAlike) {
  for (auto const type : {at::kFloat, at::kDouble})
    for (auto const& config : rules()) {
      Twins twins(config, type, 0);
      auto const g = random_values("g", type);
      for (std::int64_t i = 0; auto const value : {INFINITY, -INFINITY, NAN})
        for (int step = 0; step < 5; ++step, i += 1009) g[i].fill_(value);
      g.narrow(0, 100, 20).fill_(std::numeric_limits<float>::max());
      for (int step = 0; step < steps; ++step) twins.update(placed(g, 0));
      twins.expect_alike();
    }
}

}  // namespace
}  // namespace stratagem
