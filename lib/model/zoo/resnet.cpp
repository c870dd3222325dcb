#include "model/zoo/resnet.hpp"

#include <optional>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "model/layers.hpp"

namespace stratagem {
namespace {

/// A convolution without bias, followed by BatchNorm, an addition and an activation.
struct ConvNorm {
  ConvNorm(Declaration& declare, std::string const& conv_name, std::string const& norm_name,
           Conv2d::Shape const& shape)
      : conv(declare, conv_name, shape, kaiming_normal(shape.fan_out())),
        norm(declare, norm_name, shape.out) {}
  at::Tensor operator()(at::Tensor const& x, Frame const& frame, Activation activation,
                        at::Tensor const& added = {}) const {
    return norm(conv(x, frame), frame, activation, added);
  }

  Conv2d conv;
  BatchNorm2d norm;
};

class Stem final : public Block {
 public:
  explicit Stem(std::int64_t channels)
      : Block("stem"),
        layer_(declare_, "conv1", "bn1",
               {.in = channels, .out = 64, .kernel = 7, .stride = 2, .padding = 3}) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return at::max_pool2d(layer_(x, frame, Activation::relu), 3, 2, 1);
  }

 private:
  ConvNorm layer_;
};

class Bottleneck final : public Block {
 public:
  static constexpr std::int64_t expansion = 4;

  Bottleneck(std::string const& name, std::int64_t in, std::int64_t width, std::int64_t stride)
      : Block(name),
        reduce_(declare_, name + ".conv1", name + ".bn1", {.in = in, .out = width, .kernel = 1}),
        filter_(declare_, name + ".conv2", name + ".bn2",
                {.in = width, .out = width, .kernel = 3, .stride = stride, .padding = 1}),
        expand_(declare_, name + ".conv3", name + ".bn3",
                {.in = width, .out = expansion * width, .kernel = 1}) {
    if (stride != 1 || in != expansion * width)
      shortcut_.emplace(
          declare_, name + ".downsample.0", name + ".downsample.1",
          Conv2d::Shape{.in = in, .out = expansion * width, .kernel = 1, .stride = stride});
  }

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const around = shortcut_ ? (*shortcut_)(x, frame, Activation::none) : x;
    auto y = reduce_(x, frame, Activation::relu);
    y = filter_(y, frame, Activation::relu);
    return expand_(y, frame, Activation::relu, around);
  }

 private:
  ConvNorm reduce_, filter_, expand_;
  std::optional<ConvNorm> shortcut_;
};

class Head final : public Block {
 public:
  Head(std::int64_t in, std::int64_t classes)
      : Block("fc"),
        linear_(declare_, "fc", {.in = in, .out = classes}, default_uniform(in),
                default_uniform(in)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1), frame);
  }

 private:
  Linear linear_;
};

}  // namespace

Model make_resnet50(ModelConfig const& config, InputShape const& input) {
  constexpr int depths[4] = {3, 4, 6, 3};
  Model model{.name = "resnet50", .head = {"fc.weight", "fc.bias"}};
  model.blocks.push_back(std::make_unique<Stem>(input.channels));
  std::int64_t channels = 64, width = 64;
  for (int stage = 0; stage < 4; ++stage, width *= 2) {
    for (int i = 0; i < depths[stage]; ++i) {
      std::int64_t const stride = i == 0 && stage > 0 ? 2 : 1;
      model.blocks.push_back(
          std::make_unique<Bottleneck>(str("layer", stage + 1, ".", i), channels, width, stride));
      channels = Bottleneck::expansion * width;
    }
  }
  model.blocks.push_back(std::make_unique<Head>(channels, config.num_classes));
  return model;
}

}  // namespace stratagem
