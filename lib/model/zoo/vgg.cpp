#include "model/zoo/vgg.hpp"

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "model/layers.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t kHidden = 4096;
constexpr int kParts = 8;

/// The pooling after a convolution's ReLU, if any.
enum class Then { nothing, pool, pool_and_flatten };

class ConvBlock final : public Block {
 public:
  ConvBlock(std::string const& name, std::int64_t in, std::int64_t out, Then then)
      : ConvBlock(name, {.in = in, .out = out, .kernel = 3, .padding = 1, .bias = true}, then) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto y = conv_.with_relu(x, frame);
    if (then_ == Then::nothing) return y;
    y = at::max_pool2d(y, 2);
    return then_ == Then::pool ? y : at::adaptive_avg_pool2d(y, {7, 7}).flatten(1);
  }

 private:
  ConvBlock(std::string const& name, Conv2d::Shape const& shape, Then then)
      : Block(name), then_(then), conv_(declare_, name, shape, kaiming_normal(shape.fan_out())) {}

  Then then_;
  Conv2d conv_;
};

/// Rows [512 index, 512 (index + 1)) of the first linear layer.
class FirstLinear final : public Block {
 public:
  FirstLinear(std::string const& layer, std::int64_t in, int index)
      : Block(str(layer, ".part", index)),
        index_(index),
        linear_(declare_, layer,
                {.in = in, .out = kRows, .row_begin = index * kRows, .total_rows = kHidden},
                Initialiser::normal(0.01), Initialiser::constant(0)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(x, frame);
  }
  Part part() const override { return {index_, kParts}; }

 private:
  static constexpr std::int64_t kRows = kHidden / kParts;

  int index_;
  Linear linear_;
};

/// ReLU and dropout of the previous layer, then a linear layer.
class NextLinear final : public Block {
 public:
  NextLinear(std::string const& name, std::string const& dropout, std::int64_t in, std::int64_t out)
      : Block(name),
        dropout_{dropout, 0.5},
        linear_(declare_, name, {.in = in, .out = out}, Initialiser::normal(0.01),
                Initialiser::constant(0)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(dropout_(at::relu(x), frame), frame);
  }

 private:
  Dropout dropout_;
  Linear linear_;
};

}  // namespace

Model make_vgg16(ModelConfig const& config, InputShape const& input) {
  constexpr std::int64_t widths[5] = {64, 128, 256, 512, 512};
  constexpr int depths[5] = {2, 2, 3, 3, 3};
  Model model{.name = "vgg16", .head = {"classifier.6.weight", "classifier.6.bias"}};
  auto& blocks = model.blocks;
  std::int64_t channels = input.channels;
  int index = 0;  // in torchvision's list of convolutions, ReLUs and poolings
  for (int stage = 0; stage < 5; ++stage) {
    for (int layer = 0; layer < depths[stage]; ++layer) {
      bool const last = layer == depths[stage] - 1;
      auto const then = !last ? Then::nothing : stage < 4 ? Then::pool : Then::pool_and_flatten;
      blocks.push_back(
          std::make_unique<ConvBlock>(str("features.", index), channels, widths[stage], then));
      channels = widths[stage];
      index += last ? 3 : 2;
    }
  }
  for (int part = 0; part < kParts; ++part)
    blocks.push_back(std::make_unique<FirstLinear>("classifier.0", channels * 7 * 7, part));
  blocks.push_back(std::make_unique<NextLinear>("classifier.3", "classifier.2", kHidden, kHidden));
  blocks.push_back(
      std::make_unique<NextLinear>("classifier.6", "classifier.5", kHidden, config.num_classes));
  return model;
}

}  // namespace stratagem
