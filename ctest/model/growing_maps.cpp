#include "model/fused/growing_maps.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/text.hpp"
#include "model/fused/batch_norm.hpp"
#include "model/numbers.hpp"

namespace stratagem {
namespace {

using test::random;

constexpr auto channels_last = at::MemoryFormat::ChannelsLast;
constexpr std::int64_t in = 12, growth = 8, layers = 3, width = in + layers * growth;

struct Shape {
  std::int64_t samples, edge;
};

// Of one slice of the moments' sums and of several; maps of one pixel.
Shape const shapes[]{{4, 5}, {5, 16}, {6, 1}};

at::Tensor maps(std::string const& name, Shape const& of, std::int64_t channels) {
  return random(name, {of.samples, channels, of.edge, of.edge}).contiguous(channels_last);
}

/// A layer of a dense block: BatchNorm, ReLU and a 1x1 convolution.
struct Layer {
  BatchNormOf norm;
  at::Tensor kernel;

  Layer(int index, std::int64_t channels)
      : norm{.weight = random(str("weight", index), {channels}).requires_grad_(),
             .bias = random(str("bias", index), {channels}).requires_grad_(),
             .running_mean = at::zeros({channels}),
             .running_var = at::ones({channels}),
             .eps = 1e-5,
             .momentum = 0.1,
             .activation = Activation::relu},
        kernel(random(str("kernel", index), {growth, channels, 1, 1}).requires_grad_()) {}

  at::Tensor concatenated(at::Tensor const& x) const {
    return at::cat({x, at::conv2d(fused_batch_norm(x, {}, norm), kernel)}, 1);
  }
  at::Tensor appended(at::Tensor const& given) const {
    auto const [normed, x] = batch_norm_and_input(given, norm);
    return append(x, at::conv2d(normed, kernel), width);
  }
};

struct Result {
  std::vector<at::Tensor> outputs;  ///< of each layer
  std::vector<at::Tensor> numbers;  ///< all outputs, gradients and running statistics
};

template <class Forward>
Result run(Shape const& shape, Forward const& forward) {
  auto const x = maps("x", shape, in).requires_grad_();
  std::vector<Layer> block;
  for (int i = 0; i < layers; ++i) block.emplace_back(i, in + i * growth);
  std::vector<at::Tensor> wanted{x};
  Result result;
  auto y = x;
  for (auto const& layer : block) {
    result.outputs.push_back(y = forward(layer, y));
    wanted.insert(wanted.end(), {layer.norm.weight, layer.norm.bias, layer.kernel});
  }
  result.numbers = torch::autograd::grad({y}, wanted, {maps("gradient", shape, width)});
  for (auto const& output : result.outputs) result.numbers.push_back(output.detach());
  for (auto const& layer : block)
    result.numbers.insert(result.numbers.end(), {layer.norm.running_mean, layer.norm.running_var});
  return result;
}

auto const concatenated = [](Layer const& layer, at::Tensor const& x) {
  return layer.concatenated(x);
};
auto const appended = [](Layer const& layer, at::Tensor const& x) { return layer.appended(x); };

void expect_same_bits(Result const& one, Result const& other) {
  ASSERT_EQ(one.numbers.size(), other.numbers.size());
  for (std::size_t i = 0; i < one.numbers.size(); ++i)
    EXPECT_TRUE(one.numbers[i].equal(other.numbers[i])) << i;
}

TEST(GrowingMaps, HaveTheBitsOfConcatenation) {
  for (auto const& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.samples << " " << shape.edge);
    expect_same_bits(run(shape, appended), run(shape, concatenated));
  }
}

/// As when a layer is computed again for its backward pass.
TEST(GrowingMaps, LayerMayRunAgain) {
  auto const twice = [](Layer const& layer, at::Tensor const& x) {
    auto first = layer;
    first.norm.running_mean = layer.norm.running_mean.clone();
    first.norm.running_var = layer.norm.running_var.clone();
    {
      at::NoGradGuard const no_gradients;
      first.appended(x.detach());
    }
    return layer.appended(x);
  };
  expect_same_bits(run(shapes[1], twice), run(shapes[1], concatenated));
}

TEST(GrowingMaps, ShareOneMemory) {
  for (auto const& shape : shapes) {
    auto const outputs = run(shape, appended).outputs;
    for (auto const& output : outputs) {
      EXPECT_EQ(output.data_ptr(), outputs[0].data_ptr());
      EXPECT_EQ(growing_maps_of(output)->has_room(), &output != &outputs.back());
    }
    EXPECT_TRUE(outputs.back().is_contiguous(channels_last));
  }
}

TEST(GrowingMaps, AreToldFromOthers) {
  auto const whole = maps("x", shapes[0], in);
  ASSERT_TRUE(growing_maps_of(whole));
  EXPECT_FALSE(growing_maps_of(whole)->has_room());
  EXPECT_FALSE(growing_maps_of(whole.narrow(1, 0, 8)));
  EXPECT_FALSE(growing_maps_of(whole.contiguous()));
  EXPECT_FALSE(growing_maps_of(whole.to(at::kBFloat16)));
  EXPECT_FALSE(growing_maps_of(whole.to(at::kDouble)));
}

TEST(GrowingMaps, HaveNoRoomForMoreThanPlanned) {
  at::NoGradGuard const no_gradients;
  auto const x = maps("x", shapes[0], in);
  auto const grown = append(x, maps("fresh", shapes[0], growth), width);
  EXPECT_THROW(append(grown, maps("more", shapes[0], width), width), std::logic_error);
  EXPECT_THROW(append(grown, maps("more", shapes[0], growth), width + growth), std::logic_error);
  EXPECT_THROW(append(x.contiguous(), maps("more", shapes[0], growth), width), std::logic_error);
}

}  // namespace
}  // namespace stratagem
