#include "model/zoo/efficientnet.hpp"

#include <cmath>
#include <optional>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "model/layers.hpp"

namespace stratagem {
namespace {

/// Convolution (which keeps the spatial size, apart from its stride), BatchNorm, activation.
struct ConvNorm {
  ConvNorm(Declaration& declare, std::string const& name, Conv2d::Shape shape,
           Activation activation)
      : conv(declare, name + ".0", padded(shape), kaiming_normal(shape.fan_out())),
        norm(declare, name + ".1", shape.out, /*eps=*/1e-3),
        activation(activation) {}

  at::Tensor operator()(at::Tensor const& x, Frame const& frame) const {
    return norm(conv(x, frame), frame, activation);
  }

  static Conv2d::Shape padded(Conv2d::Shape shape) {
    shape.padding = (shape.kernel - 1) / 2;
    return shape;
  }

  Conv2d conv;
  BatchNorm2d norm;
  Activation activation;
};

/// Hu et al., "Squeeze-and-excitation networks", 2018: every channel is scaled by a gate computed
/// from the means of all channels.
struct SqueezeExcitation {
  SqueezeExcitation(Declaration& declare, std::string const& name, std::int64_t channels,
                    std::int64_t squeezed)
      : reduce(declare, name + ".fc1", {.in = channels, .out = squeezed, .kernel = 1, .bias = true},
               kaiming_normal(squeezed)),
        expand(declare, name + ".fc2", {.in = squeezed, .out = channels, .kernel = 1, .bias = true},
               kaiming_normal(channels)) {}

  at::Tensor operator()(at::Tensor const& x, Frame const& frame) const {
    auto const squeezed = at::silu(reduce(at::adaptive_avg_pool2d(x, {1, 1}), frame));
    return at::sigmoid(expand(squeezed, frame)) * x;
  }

  Conv2d reduce, expand;
};

/// One of a stage's blocks.
struct BlockShape {
  std::int64_t in, out, expansion, stride;
  double drop;  ///< probability of stochastic depth

  std::int64_t inner() const { return in * expansion; }
  bool residual() const { return stride == 1 && in == out; }
};

/// A block that adds its input to its result, if the shapes allow it.
class Residual : public Block {
 public:
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const final {
    auto y = branch(x, frame);
    return residual_ ? depth_(y, frame).add_(x) : y;
  }

 protected:
  Residual(std::string const& name, BlockShape const& shape)
      : Block(name), residual_(shape.residual()), depth_{name + ".stochastic_depth", shape.drop} {}
  virtual at::Tensor branch(at::Tensor const& x, Frame const& frame) const = 0;

 private:
  bool residual_;
  StochasticDepth depth_;
};

/// 3x3 convolution, then 1x1 projection; without expansion there is no projection.
class FusedMBConv final : public Residual {
 public:
  FusedMBConv(std::string const& name, BlockShape const& shape)
      : Residual(name, shape),
        expand_(declare_, name + ".block.0",
                {.in = shape.in, .out = shape.inner(), .kernel = 3, .stride = shape.stride},
                Activation::silu) {
    if (shape.expansion > 1)
      project_.emplace(declare_, name + ".block.1",
                       Conv2d::Shape{.in = shape.inner(), .out = shape.out, .kernel = 1},
                       Activation::none);
  }

 private:
  at::Tensor branch(at::Tensor const& x, Frame const& frame) const override {
    auto y = expand_(x, frame);
    return project_ ? (*project_)(y, frame) : y;
  }

  ConvNorm expand_;
  std::optional<ConvNorm> project_;
};

/// 1x1 expansion, depthwise 3x3, squeeze-and-excitation, 1x1 projection.
class MBConv final : public Residual {
 public:
  MBConv(std::string const& name, BlockShape const& shape)
      : Residual(name, shape),
        expand_(declare_, name + ".block.0", {.in = shape.in, .out = shape.inner(), .kernel = 1},
                Activation::silu),
        filter_(declare_, name + ".block.1",
                {.in = shape.inner(),
                 .out = shape.inner(),
                 .kernel = 3,
                 .stride = shape.stride,
                 .groups = shape.inner()},
                Activation::silu),
        gate_(declare_, name + ".block.2", shape.inner(), shape.in / 4),
        project_(declare_, name + ".block.3", {.in = shape.inner(), .out = shape.out, .kernel = 1},
                 Activation::none) {}

 private:
  at::Tensor branch(at::Tensor const& x, Frame const& frame) const override {
    auto const y = filter_(expand_(x, frame), frame);
    return project_(gate_(y, frame), frame);
  }

  ConvNorm expand_, filter_;
  SqueezeExcitation gate_;
  ConvNorm project_;
};

/// The first and the last convolution.
class ConvBlock final : public Block {
 public:
  ConvBlock(std::string const& name, Conv2d::Shape const& shape)
      : Block(name), layer_(declare_, name, shape, Activation::silu) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return layer_(x, frame);
  }

 private:
  ConvNorm layer_;
};

class Head final : public Block {
 public:
  Head(std::int64_t in, std::int64_t classes)
      : Block("classifier"),
        dropout_{"classifier.0", 0.4},
        linear_(declare_, "classifier.1", {.in = in, .out = classes},
                Initialiser::uniform(1 / std::sqrt(static_cast<double>(classes))),
                Initialiser::constant(0)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(dropout_(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1), frame), frame);
  }

 private:
  Dropout dropout_;
  Linear linear_;
};

struct Stage {
  bool fused;
  std::int64_t expansion, stride, out;
  int depth;
};

}  // namespace

Model make_efficientnetv2_l(ModelConfig const& config, InputShape const& input) {
  constexpr Stage stages[] = {
      {true, 1, 1, 32, 4},    {true, 4, 2, 64, 7},    {true, 4, 2, 96, 7},  {false, 4, 2, 192, 10},
      {false, 6, 1, 224, 19}, {false, 6, 2, 384, 25}, {false, 6, 1, 640, 7}};
  constexpr double highest_drop = 0.2;
  int total = 0;
  for (auto const& stage : stages) total += stage.depth;

  Model model{.name = "efficientnetv2_l", .head = {"classifier.1.weight", "classifier.1.bias"}};
  auto& blocks = model.blocks;
  std::int64_t channels = 32;
  blocks.push_back(std::make_unique<ConvBlock>(
      "features.0",
      Conv2d::Shape{.in = input.channels, .out = channels, .kernel = 3, .stride = 2}));
  int group = 1, done = 0;
  for (auto const& stage : stages) {
    for (int i = 0; i < stage.depth; ++i, ++done) {
      auto const name = str("features.", group, ".", i);
      BlockShape const shape{channels, stage.out, stage.expansion, i == 0 ? stage.stride : 1,
                             highest_drop * done / total};
      if (stage.fused)
        blocks.push_back(std::make_unique<FusedMBConv>(name, shape));
      else
        blocks.push_back(std::make_unique<MBConv>(name, shape));
      channels = stage.out;
    }
    ++group;
  }
  blocks.push_back(std::make_unique<ConvBlock>(
      str("features.", group), Conv2d::Shape{.in = channels, .out = 1280, .kernel = 1}));
  blocks.push_back(std::make_unique<Head>(1280, config.num_classes));
  return model;
}

}  // namespace stratagem
