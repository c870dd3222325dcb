#include "support/tiny_models.hpp"

#include <ATen/ATen.h>

#include "model/layers.hpp"

namespace stratagem::test {
namespace {

class Stem final : public Block {
 public:
  Stem(std::int64_t in, std::int64_t out)
      : Block("stem"),
        conv_(declare_, "stem.conv", {.in = in, .out = out, .kernel = 3, .stride = 2, .padding = 1},
              kaiming_normal(9 * out)),
        norm_(declare_, "stem.norm", out) {}
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return norm_(conv_(x, frame), frame).relu();
  }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

class Residual final : public Block {
 public:
  Residual(std::string const& name, std::int64_t width)
      : Block(name),
        conv1_(declare_, name + ".conv1", {.in = width, .out = width, .kernel = 3, .padding = 1},
               kaiming_normal(9 * width)),
        norm1_(declare_, name + ".norm1", width),
        conv2_(declare_, name + ".conv2", {.in = width, .out = width, .kernel = 3, .padding = 1},
               kaiming_normal(9 * width)),
        norm2_(declare_, name + ".norm2", width),
        drop_{name + ".drop", 0.3} {}
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const branch = norm2_(conv2_(norm1_(conv1_(x, frame), frame).relu(), frame), frame);
    return (x + drop_(branch, frame)).relu();
  }

 private:
  Conv2d conv1_;
  BatchNorm2d norm1_;
  Conv2d conv2_;
  BatchNorm2d norm2_;
  StochasticDepth drop_;
};

class PooledHead final : public Block {
 public:
  PooledHead(std::int64_t in, std::int64_t out)
      : Block("head"),
        linear_(declare_, "head", {in, out}, default_uniform(in), default_uniform(in)) {}
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(x.mean({2, 3}), frame);
  }

 private:
  Linear linear_;
};

/// Adds nothing, by way of a square root at 0 where there is to be a cliff.
class Cliff final : public Block {
 public:
  explicit Cliff(std::int64_t width)
      : Block("cliff"),
        weight_(declare_.parameter({"cliff.weight", {width}, Initialiser::constant(0)})) {}
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const& weight = frame.parameters[static_cast<std::size_t>(weight_)];
    bool const here = frame.context.step == 2 && frame.context.first_slot > 0;
    return x + (here ? weight.sqrt() : 0 * weight).view({1, -1, 1, 1});
  }

 private:
  int weight_;
};

class OddConv final : public Block {
 public:
  OddConv(std::int64_t in, std::int64_t out)
      : Block("conv"),
        conv_(declare_, "conv", {.in = in, .out = out, .kernel = 5, .stride = 3, .bias = true},
              default_uniform(25 * in), default_uniform(25 * in)),
        drop_{"conv.drop", 0.25} {}
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return drop_(conv_(x, frame).relu().flatten(1), frame);
  }

 private:
  Conv2d conv_;
  Dropout drop_;
};

/// Convolutions to small maps of every kind: images of 28 pixels to 4 x 4, 2 x 2, and one pixel.
class SmallMaps final : public Block {
 public:
  explicit SmallMaps(std::int64_t in)
      : Block("maps"),
        convs_{conv("maps.0", {.in = in, .out = 8, .kernel = 7, .stride = 7}),
               conv("maps.1", {.in = 8, .out = 12, .kernel = 1, .bias = true}),
               conv("maps.2", {.in = 12, .out = 16, .kernel = 3, .stride = 2, .padding = 1}),
               conv("maps.3", {.in = 16, .out = 16, .kernel = 3, .padding = 1, .groups = 16}),
               conv("maps.4", {.in = 16, .out = 8, .kernel = 2, .bias = true})} {}
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto y = x;
    for (auto const& conv : convs_) y = conv(y, frame).relu();
    return y;
  }

 private:
  Conv2d conv(std::string const& name, Conv2d::Shape const& shape) {
    return {declare_, name, shape, kaiming_normal(shape.fan_in())};
  }

  std::vector<Conv2d> convs_;
};

/// Rows [begin, begin + rows) of a linear layer of `total` rows.
class LinearPart final : public Block {
 public:
  LinearPart(Part part, std::int64_t in, std::int64_t begin, std::int64_t rows, std::int64_t total)
      : Block("wide." + std::to_string(part.index)),
        part_(part),
        weight_(declare_.parameter(
            {"wide.weight", {rows, in}, default_uniform(in), false, begin, total})),
        bias_(declare_.parameter({"wide.bias", {rows}, default_uniform(in), false, begin, total})) {
  }
  Part part() const override { return part_; }
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return at::linear(x, frame.parameters[static_cast<std::size_t>(weight_)],
                      frame.parameters[static_cast<std::size_t>(bias_)]);
  }

 private:
  Part part_;
  int weight_, bias_;
};

class OddHead final : public Block {
 public:
  OddHead(std::int64_t in, std::int64_t out)
      : Block("head"),
        linear_(declare_, "head", {in, out}, default_uniform(in), default_uniform(in)) {}
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(x.relu(), frame);
  }

 private:
  Linear linear_;
};

}  // namespace

Model tiny_residual(std::int64_t channels, std::int64_t classes) {
  Model model{.name = "tiny_residual", .memory_format = MemoryFormat::channels_last};
  model.blocks.push_back(std::make_unique<Stem>(channels, 8));
  model.blocks.push_back(std::make_unique<Residual>("block1", 8));
  model.blocks.push_back(std::make_unique<Residual>("block2", 8));
  model.blocks.push_back(std::make_unique<PooledHead>(8, classes));
  return model;
}

Model tiny_maps(std::int64_t channels, std::int64_t classes) {
  Model model{.name = "tiny_maps", .memory_format = MemoryFormat::channels_last};
  model.blocks.push_back(std::make_unique<SmallMaps>(channels));
  model.blocks.push_back(std::make_unique<PooledHead>(8, classes));
  return model;
}

Model tiny_cliff(std::int64_t channels, std::int64_t classes) {
  Model model{.name = "tiny_cliff"};
  model.blocks.push_back(std::make_unique<Stem>(channels, 8));
  model.blocks.push_back(std::make_unique<Cliff>(8));
  model.blocks.push_back(std::make_unique<PooledHead>(8, classes));
  return model;
}

Model tiny_odd(std::int64_t channels, std::int64_t classes) {
  constexpr std::int64_t edge = (28 - 5) / 3 + 1, width = 7, rows[] = {5, 11, 3}, total = 19;
  Model model{.name = "tiny_odd"};
  model.blocks.push_back(std::make_unique<OddConv>(channels, width));
  std::int64_t begin = 0;
  for (int i = 0; i < 3; ++i) {
    model.blocks.push_back(std::make_unique<LinearPart>(Block::Part{i, 3}, width * edge * edge,
                                                        begin, rows[i], total));
    begin += rows[i];
  }
  model.blocks.push_back(std::make_unique<OddHead>(total, classes));
  return model;
}

}  // namespace stratagem::test
