#include "model/zoo/convnext.hpp"

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "model/layers.hpp"

namespace stratagem {
namespace {

constexpr double kEpsilon = 1e-6;

Initialiser weights() {
  return Initialiser::truncated_normal(0.02, 2);
}

/// LayerNorm over the channels of [n, c, h, w].
at::Tensor channel_norm(LayerNorm const& norm, at::Tensor const& x, Frame const& frame) {
  return norm(x.permute({0, 2, 3, 1}), frame).permute({0, 3, 1, 2});
}

/// Divides the image into patches of 4x4.
class Stem final : public Block {
 public:
  Stem(std::int64_t in, std::int64_t out)
      : Block("features.0"),
        conv_(declare_, "features.0.0",
              {.in = in, .out = out, .kernel = 4, .stride = 4, .bias = true}, weights()),
        norm_(declare_, "features.0.1", out, kEpsilon) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return channel_norm(norm_, conv_(x, frame), frame);
  }

 private:
  Conv2d conv_;
  LayerNorm norm_;
};

/// Depthwise 7x7 convolution, then two linear layers over the channels of each pixel.
class ResidualBlock final : public Block {
 public:
  ResidualBlock(std::string const& name, std::int64_t channels, double drop)
      : Block(name),
        scale_(declare_.parameter(
            {name + ".layer_scale", {channels, 1, 1}, Initialiser::constant(1e-6), true})),
        conv_(declare_, name + ".block.0",
              {.in = channels,
               .out = channels,
               .kernel = 7,
               .padding = 3,
               .groups = channels,
               .bias = true},
              weights()),
        norm_(declare_, name + ".block.2", channels, kEpsilon),
        expand_(declare_, name + ".block.3", {.in = channels, .out = 4 * channels}, weights(),
                Initialiser::constant(0)),
        reduce_(declare_, name + ".block.5", {.in = 4 * channels, .out = channels}, weights(),
                Initialiser::constant(0)),
        depth_{name + ".stochastic_depth", drop} {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto y = norm_(conv_(x, frame).permute({0, 2, 3, 1}), frame);
    y = reduce_(at::gelu(expand_(y, frame)), frame).permute({0, 3, 1, 2});
    auto const& scale = frame.parameters[static_cast<std::size_t>(scale_)];
    return depth_(scale.to(y.scalar_type()) * y, frame).add_(x);
  }

 private:
  int scale_;
  Conv2d conv_;
  LayerNorm norm_;
  Linear expand_, reduce_;
  StochasticDepth depth_;
};

class Downsample final : public Block {
 public:
  Downsample(std::string const& name, std::int64_t in, std::int64_t out)
      : Block(name),
        norm_(declare_, name + ".0", in, kEpsilon),
        conv_(declare_, name + ".1", {.in = in, .out = out, .kernel = 2, .stride = 2, .bias = true},
              weights()) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return conv_(channel_norm(norm_, x, frame), frame);
  }

 private:
  LayerNorm norm_;
  Conv2d conv_;
};

class Head final : public Block {
 public:
  Head(std::int64_t in, std::int64_t classes)
      : Block("classifier"),
        norm_(declare_, "classifier.0", in, kEpsilon),
        linear_(declare_, "classifier.2", {.in = in, .out = classes}, weights(),
                Initialiser::constant(0)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const y = channel_norm(norm_, at::adaptive_avg_pool2d(x, {1, 1}), frame);
    return linear_(y.flatten(1), frame);
  }

 private:
  LayerNorm norm_;
  Linear linear_;
};

}  // namespace

Model make_convnext_l(ModelConfig const& config, InputShape const& input) {
  constexpr std::int64_t widths[4] = {192, 384, 768, 1536};
  constexpr int depths[4] = {3, 3, 27, 3};
  constexpr double highest_drop = 0.5;
  int total = 0;
  for (int depth : depths) total += depth;

  Model model{.name = "convnext_l", .head = {"classifier.2.weight", "classifier.2.bias"}};
  auto& blocks = model.blocks;
  blocks.push_back(std::make_unique<Stem>(input.channels, widths[0]));
  int group = 1, done = 0;
  for (int stage = 0; stage < 4; ++stage, ++group) {
    if (stage > 0) {
      blocks.push_back(
          std::make_unique<Downsample>(str("features.", group), widths[stage - 1], widths[stage]));
      ++group;
    }
    for (int i = 0; i < depths[stage]; ++i, ++done)
      blocks.push_back(std::make_unique<ResidualBlock>(
          str("features.", group, ".", i), widths[stage], highest_drop * done / (total - 1)));
  }
  blocks.push_back(std::make_unique<Head>(widths[3], config.num_classes));
  return model;
}

}  // namespace stratagem
