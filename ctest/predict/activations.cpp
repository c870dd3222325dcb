#include "predict/activations.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "comm/serial/serial_world.hpp"
#include "conformance/training.hpp"
#include "gpu/memory.hpp"
#include "model/layers.hpp"
#include "model/support.hpp"
#include "strategy/registry.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem::test {
namespace {

constexpr gpu::Device host{};

/// Each test chooses its number of threads.
class Activations : public testing::Test {
 protected:
  static void use_threads(int count) { at::set_num_threads(count); }
  ~Activations() override { use_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

struct Case {
  Model model;
  ModelConfig config;
  InputShape input{.channels = 1, .size = 28};
  StrategyConfig strategy = DdpConfig{};
  PrecisionConfig precision;
  DeviceChoice device = DeviceChoice::cpu;
};

at::Tensor images(Case const& of, std::int64_t samples) {
  return at::rand({samples, of.input.channels, of.input.size, of.input.size},
                  compute_type(of.precision.compute))
      .contiguous(of.model.memory_format == MemoryFormat::channels_last
                      ? at::MemoryFormat::ChannelsLast
                      : at::MemoryFormat::Contiguous);
}

/// Of a real step, the second, beyond what lives between steps.
std::int64_t measured_peak(Case const& of, std::int64_t samples) {
  SerialWorld alone({});
  trace::Recorder recorder(host, 0);
  auto const member = make_member(of.strategy, {.model = of.model,
                                                .world = alone,
                                                .recorder = recorder,
                                                .device = host,
                                                .precision = of.precision,
                                                .dropout = of.config.dropout,
                                                .recompute = of.config.recompute});
  Batch const batch{.inputs = images(of, samples), .labels = at::randint(10, {samples}, at::kLong)};
  member.strategy->step(batch, {.lr = 0.01});
  auto const before = gpu::live_memory(host).total();
  gpu::reset_peak_memory(host);
  member.strategy->step(batch, {.lr = 0.01});
  return gpu::peak_memory(host).total() - before;
}

/// What the tape holds when the backward pass is about to begin.
std::int64_t measured_kept(Case const& of, std::int64_t samples) {
  State const state(of.model.blocks);
  std::vector<std::vector<at::Tensor>> parameters;
  for (std::size_t i = 0; i < of.model.blocks.size(); ++i) {
    parameters.push_back(state.parameters(static_cast<int>(i)));
    if (of.model.memory_format != MemoryFormat::channels_last) continue;
    for (auto& parameter : parameters.back())
      if (parameter.dim() == 4)
        parameter = parameter.detach().contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  }
  OnePass tape(of.model.blocks, of.config.recompute);
  auto const x = images(of, samples);
  Context const context{
      .training = true, .dropout = of.config.dropout, .as_on_gpu = of.device == DeviceChoice::cuda};
  auto const before = gpu::live_memory(host).total();
  at::Tensor y = x;
  for (int i = 0; i < tape.blocks(); ++i)
    y = tape.forward(
        i, y, {parameters[static_cast<std::size_t>(i)], state.frame(i, context).buffers, context});
  return gpu::live_memory(host).total() - before;
}

ActivationUse predicted(Case const& of, std::int64_t samples) {
  return ActivationPredictor().predict(of.model, of.config, of.input, of.precision.compute, samples,
                                       at::get_num_threads(), of.device);
}

void expect_near(std::int64_t predicted, std::int64_t measured, std::string const& what) {
  EXPECT_NEAR(static_cast<double>(predicted) / static_cast<double>(measured), 1, 0.02)
      << what << ", on " << at::get_num_threads() << " threads: " << predicted << " predicted, "
      << measured << " measured";
}

void expect_predicted(Case const& of, std::int64_t samples) {
  auto const use = predicted(of, samples);
  expect_near(use.peak, measured_peak(of, samples), of.model.name + ", peak");
  if (of.precision.compute == Precision::fp32)
    expect_near(use.kept, measured_kept(of, samples), of.model.name + ", kept");
}

TEST_F(Activations, AreThoseOfAStep) {
  use_threads(2);
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd"})
    for (std::int64_t const samples : {8, 24, 64}) {
      expect_predicted({.model = test_model(model)}, samples);
      expect_predicted({.model = test_model(model), .strategy = SerialConfig{}}, samples);
    }
}

TEST_F(Activations, AreThoseOfAStepOfFewSamplesOnOneThread) {
  use_threads(1);
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd"})
    for (std::int64_t const samples : {6, 15})
      expect_predicted({.model = test_model(model)}, samples);
}

TEST_F(Activations, AreFewerWhenBlocksAreRecomputed) {
  use_threads(2);
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd"}) {
    Case all{.model = test_model(model)};
    auto const kept = predicted(all, 64).kept;
    for (int const every : {1, 2}) {
      all.config.recompute = {every};
      expect_predicted(all, 64);
      EXPECT_LT(predicted(all, 64).kept, kept) << model;
    }
  }
}

TEST_F(Activations, HaveTheTypeThatIsComputedWith) {
  use_threads(2);
  for (auto const type : {Precision::bf16, Precision::fp64})
    expect_predicted({.model = test_model("lenet"), .precision = {.compute = type}}, 64);
}

TEST_F(Activations, NeedNoMasksWithoutDropout) {
  use_threads(2);
  Case odd{.model = test_model("tiny_odd")};
  auto const with = predicted(odd, 64).kept;
  odd.config.dropout = false;
  expect_predicted(odd, 64);
  EXPECT_LT(predicted(odd, 64).kept, with);
}

Case large_model(std::string const& name, InputShape const& input) {
  ModelConfig const config{.name = name};
  return {.model = make_model(config, input), .config = config, .input = input};
}

TEST_F(Activations, AreThoseOfALargeModel) {
  for (auto const* name : {"resnet50", "densenet121"}) expect_predicted(large_model(name, {}), 16);
}

/// Where the layers of a dense block are concatenated.
TEST_F(Activations, AreThoseOfAGpuWhereThatHoldsMore) {
  auto dense = large_model("densenet121", {.size = 64});
  auto const here = predicted(dense, 8).kept;
  dense.device = DeviceChoice::cuda;
  expect_near(predicted(dense, 8).kept, measured_kept(dense, 8), "kept on a GPU");
  EXPECT_GT(predicted(dense, 8).kept, here * 5 / 4);
}

TEST_F(Activations, OfLargeImagesFollowFromSmallOnes) {
  use_threads(2);
  for (auto const* name : {"resnet50", "densenet121"})
    expect_predicted(large_model(name, {.size = 96}), 8);
}

/// Needs most where it has scratch memory of 16 MiB, with many samples where each has some of it.
class TwoMoments final : public Block {
 public:
  TwoMoments()
      : Block("head"), linear_(declare_, "head", {1, 10}, default_uniform(1), default_uniform(1)) {}
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const held = at::empty({x.size(0), 4 << 10});
    static_cast<void>(at::empty({4 << 20}));
    static_cast<void>(at::empty({x.size(0), 16 << 10}));
    return linear_(x.mean({2, 3}), frame);
  }

 private:
  Linear linear_;
};

TEST_F(Activations, AreThoseOfTheMomentThatNeedsMostWithManySamples) {
  Case of{.model = {.name = "two_moments"}};
  of.model.blocks.push_back(std::make_unique<TwoMoments>());
  expect_predicted(of, 8);
  expect_predicted(of, 1000);  // affordable: 80 MiB, which 4 and 8 samples tell to be 32
  expect_predicted(of, 8000);
}

TEST_F(Activations, AreThoseOfPassesThatWereRunElsewhere) {
  auto const lenet = test_model("lenet");
  auto const predict = [&](ActivationPredictor& predictor) {
    return predictor.predict(lenet, {}, {.channels = 1, .size = 28}, Precision::fp32, 64, 4).peak;
  };
  use_threads(4);
  ActivationPredictor there;
  auto const peak = predict(there);
  use_threads(2);
  ActivationPredictor here(there.passes());
  EXPECT_EQ(predict(here), peak);
  EXPECT_EQ(here.passes().size(), there.passes().size()) << "a pass on as few threads as are here";

  auto const of_others = [&](ActivationPredictor::Machine machine) {
    ActivationPredictor predictor(there.passes(), machine);
    static_cast<void>(
        predictor.predict(lenet, {}, {.channels = 1, .size = 28}, Precision::fp32, 48, 4));
    return predictor.passes().size() - there.passes().size();
  };
  EXPECT_EQ(of_others(ActivationPredictor::Machine::another), 0U) << "its lines, not our kernels";
  EXPECT_EQ(of_others(ActivationPredictor::Machine::this_one), 1U);
}

TEST_F(Activations, NothingOfTheProbeStays) {
  auto const before = gpu::live_memory(host).total();
  static_cast<void>(predicted({.model = test_model("lenet")}, 8));
  EXPECT_EQ(gpu::live_memory(host).total(), before);
}

}  // namespace
}  // namespace stratagem::test
