#include "model/zoo/lenet.hpp"

#include <ATen/ATen.h>

#include "model/layers.hpp"

namespace stratagem {
namespace {

/// Convolution, ReLU, and 2x2 max-pooling.
class Stage final : public Block {
 public:
  Stage(std::string const& name, Conv2d::Shape const& shape)
      : Block(name),
        conv_(declare_, name, shape, default_uniform(shape.fan_in()),
              default_uniform(shape.fan_in())) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return at::max_pool2d(conv_.with_relu(x, frame), 2);
  }

 private:
  Conv2d conv_;
};

class Hidden final : public Block {
 public:
  Hidden(std::string const& name, std::int64_t in, std::int64_t out)
      : Block(name), linear_(declare_, name, {in, out}, default_uniform(in), default_uniform(in)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(x.flatten(1), frame).relu_();
  }

 private:
  Linear linear_;
};

class Head final : public Block {
 public:
  Head(std::string const& name, std::int64_t in, std::int64_t classes)
      : Block(name),
        linear_(declare_, name, {in, classes}, default_uniform(in), default_uniform(in)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(x, frame);
  }

 private:
  Linear linear_;
};

}  // namespace

Model make_lenet(ModelConfig const& config, InputShape const& input) {
  auto const after_first = input.size / 2;          // padding keeps the size, pooling halves
  auto const after_second = (after_first - 4) / 2;  // no padding
  auto const features = 50 * after_second * after_second;
  Model model{.name = "lenet", .head = {"fc2.weight", "fc2.bias"}};
  auto& blocks = model.blocks;
  blocks.push_back(std::make_unique<Stage>(
      "conv1",
      Conv2d::Shape{.in = input.channels, .out = 20, .kernel = 5, .padding = 2, .bias = true}));
  blocks.push_back(std::make_unique<Stage>(
      "conv2", Conv2d::Shape{.in = 20, .out = 50, .kernel = 5, .bias = true}));
  blocks.push_back(std::make_unique<Hidden>("fc1", features, 500));
  blocks.push_back(std::make_unique<Head>("fc2", 500, config.num_classes));
  return model;
}

}  // namespace stratagem
