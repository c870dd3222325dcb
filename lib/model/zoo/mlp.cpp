#include "model/zoo/mlp.hpp"

#include <ATen/ATen.h>

#include "model/layers.hpp"

namespace stratagem {
namespace {

class Layer final : public Block {
 public:
  enum class Output { relu, logits };

  Layer(std::string const& name, std::int64_t in, std::int64_t out, Output output)
      : Block(name),
        output_(output),
        linear_(declare_, name, {in, out}, default_uniform(in), default_uniform(in)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto y = linear_(x.flatten(1), frame);
    return output_ == Output::relu ? y.relu_() : y;
  }

 private:
  Output output_;
  Linear linear_;
};

}  // namespace

Model make_mlp(ModelConfig const& config, InputShape const& input) {
  auto const pixels = input.channels * input.size * input.size;
  Model model{.name = "mlp", .head = {"fc3.weight", "fc3.bias"}};
  model.blocks.push_back(std::make_unique<Layer>("fc1", pixels, 256, Layer::Output::relu));
  model.blocks.push_back(std::make_unique<Layer>("fc2", 256, 128, Layer::Output::relu));
  model.blocks.push_back(
      std::make_unique<Layer>("fc3", 128, config.num_classes, Layer::Output::logits));
  return model;
}

}  // namespace stratagem
