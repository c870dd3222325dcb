#include "model/zoo/densenet.hpp"

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "model/fused/growing_maps.hpp"
#include "model/layers.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t kGrowth = 32;

Conv2d make_conv(Declaration& declare, std::string const& name, Conv2d::Shape const& shape) {
  return {declare, name, shape, kaiming_normal(shape.fan_in())};
}

class Stem final : public Block {
 public:
  explicit Stem(std::int64_t in, std::int64_t out)
      : Block("features.stem"),
        conv_(make_conv(declare_, "features.conv0",
                        {.in = in, .out = out, .kernel = 7, .stride = 2, .padding = 3})),
        norm_(declare_, "features.norm0", out) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return at::max_pool2d(norm_(conv_(x, frame), frame, Activation::relu), 3, 2, 1);
  }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

/// Appends kGrowth channels; those of all layers of a dense block share one memory where they can.
class DenseLayer final : public Block {
 public:
  /// `width`: channels after the block's last layer.
  DenseLayer(std::string const& name, std::int64_t in, std::int64_t width)
      : Block(name),
        width_(width),
        norm1_(declare_, name + ".norm1", in),
        conv1_(make_conv(declare_, name + ".conv1", {.in = in, .out = kInner, .kernel = 1})),
        norm2_(declare_, name + ".norm2", kInner),
        conv2_(make_conv(declare_, name + ".conv2",
                         {.in = kInner, .out = kGrowth, .kernel = 3, .padding = 1})) {}

  at::Tensor forward(at::Tensor const& given, Frame const& frame) const override {
    auto const& context = frame.context;
    bool const grows = context.training && context.fused && !context.as_on_gpu;
    if (!grows || !growing_maps_of(given))
      return at::cat({given, fresh(norm1_(given, frame, Activation::relu), frame)}, 1);
    auto const [normed, x] = norm1_.with_input(given, frame, Activation::relu);
    return append(x, fresh(normed, frame), width_);
  }

 private:
  static constexpr std::int64_t kInner = 4 * kGrowth;

  at::Tensor fresh(at::Tensor const& normed, Frame const& frame) const {
    return conv2_(norm2_(conv1_(normed, frame), frame, Activation::relu), frame);
  }

  std::int64_t width_;
  BatchNorm2d norm1_;
  Conv2d conv1_;
  BatchNorm2d norm2_;
  Conv2d conv2_;
};

/// Halves the channels and the spatial size.
class Transition final : public Block {
 public:
  Transition(std::string const& name, std::int64_t in)
      : Block(name),
        norm_(declare_, name + ".norm", in),
        conv_(make_conv(declare_, name + ".conv", {.in = in, .out = in / 2, .kernel = 1})) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return at::avg_pool2d(conv_(norm_(x, frame, Activation::relu), frame), 2);
  }

 private:
  BatchNorm2d norm_;
  Conv2d conv_;
};

class Head final : public Block {
 public:
  Head(std::int64_t in, std::int64_t classes)
      : Block("classifier"),
        norm_(declare_, "features.norm5", in),
        linear_(declare_, "classifier", {.in = in, .out = classes}, default_uniform(in),
                Initialiser::constant(0)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const y = norm_(x, frame, Activation::relu);
    return linear_(at::adaptive_avg_pool2d(y, {1, 1}).flatten(1), frame);
  }

 private:
  BatchNorm2d norm_;
  Linear linear_;
};

}  // namespace

Model make_densenet121(ModelConfig const& config, InputShape const& input) {
  constexpr int depths[4] = {6, 12, 24, 16};
  Model model{.name = "densenet121", .head = {"classifier.weight", "classifier.bias"}};
  std::int64_t channels = 64;
  model.blocks.push_back(std::make_unique<Stem>(input.channels, channels));
  for (int stage = 1; stage <= 4; ++stage) {
    auto const width = channels + depths[stage - 1] * kGrowth;
    for (int layer = 1; channels < width; ++layer, channels += kGrowth)
      model.blocks.push_back(std::make_unique<DenseLayer>(
          str("features.denseblock", stage, ".denselayer", layer), channels, width));
    if (stage == 4) break;
    model.blocks.push_back(
        std::make_unique<Transition>(str("features.transition", stage), channels));
    channels /= 2;
  }
  model.blocks.push_back(std::make_unique<Head>(channels, config.num_classes));
  return model;
}

}  // namespace stratagem
