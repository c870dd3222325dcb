#include "model/zoo/vit.hpp"

#include <cmath>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "model/attention.hpp"
#include "model/layers.hpp"
#include "model/linear.hpp"

namespace stratagem {
namespace {

constexpr double kEpsilon = 1e-6;

/// Glorot & Bengio 2010: uniform with variance 2 / (in + out).
Initialiser xavier_uniform(std::int64_t in, std::int64_t out) {
  return Initialiser::uniform(std::sqrt(6.0 / static_cast<double>(in + out)));
}

/// A learned class token in front of a projection of every patch, plus learned positions.
class Patches final : public Block {
 public:
  Patches(VitShape const& shape, InputShape const& input)
      : Block("conv_proj"),
        class_token_(
            declare_.parameter({"class_token", {1, 1, shape.width}, Initialiser::constant(0)})),
        project_(
            declare_, "conv_proj",
            {.in = input.channels,
             .out = shape.width,
             .kernel = shape.patch,
             .stride = shape.patch,
             .bias = true},
            Initialiser::truncated_normal(
                std::sqrt(1.0 / static_cast<double>(input.channels * shape.patch * shape.patch)),
                2)),
        positions_(declare_.parameter({"encoder.pos_embedding",
                                       {1, tokens(shape, input), shape.width},
                                       Initialiser::normal(0.02)})),
        drop_{"encoder.dropout", shape.dropout} {}

  /// [n, channels, size, size] -> [n, 1 + patches, width].
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const patches = project_(x, frame).flatten(2).transpose(1, 2);
    auto const& token = frame.parameters[static_cast<std::size_t>(class_token_)];
    auto const& positions = frame.parameters[static_cast<std::size_t>(positions_)];
    auto const all = at::cat({token.expand({x.size(0), -1, -1}), patches}, 1);
    return drop_(all + positions, frame);
  }

 private:
  static std::int64_t tokens(VitShape const& shape, InputShape const& input) {
    auto const along = input.size / shape.patch;
    return 1 + along * along;
  }

  int class_token_;
  Conv2d project_;
  int positions_;
  Dropout drop_;
};

/// x + attention(norm(x)), where every token sees all.
class AttentionHalf final : public Block {
 public:
  AttentionHalf(std::string const& name, VitShape const& shape)
      : Block(name + ".self_attention"),
        heads_(shape.heads),
        norm_(declare_, name + ".ln_1", shape.width, kEpsilon),
        weight_(declare_.parameter({name + ".self_attention.in_proj_weight",
                                    {3 * shape.width, shape.width},
                                    xavier_uniform(shape.width, 3 * shape.width)})),
        bias_(declare_.parameter(
            {name + ".self_attention.in_proj_bias", {3 * shape.width}, Initialiser::constant(0)})),
        output_(declare_, name + ".self_attention.out_proj",
                {.in = shape.width, .out = shape.width}, default_uniform(shape.width),
                Initialiser::constant(0)),
        drop_{name + ".dropout", shape.dropout} {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const joined = linear(norm_(x, frame), frame, weight_, bias_);
    auto const seen = self_attention(joined, heads_, Attends::to_all);
    return x + drop_(output_(seen, frame), frame);
  }

 private:
  std::int64_t heads_;
  LayerNorm norm_;
  int weight_, bias_;
  Linear output_;
  Dropout drop_;
};

/// x + mlp(norm(x)).
class MlpHalf final : public Block {
 public:
  MlpHalf(std::string const& name, VitShape const& shape)
      : Block(name + ".mlp"),
        norm_(declare_, name + ".ln_2", shape.width, kEpsilon),
        expand_(declare_, name + ".mlp.0", {.in = shape.width, .out = 4 * shape.width},
                xavier_uniform(shape.width, 4 * shape.width), Initialiser::normal(1e-6)),
        reduce_(declare_, name + ".mlp.3", {.in = 4 * shape.width, .out = shape.width},
                xavier_uniform(4 * shape.width, shape.width), Initialiser::normal(1e-6)),
        inner_drop_{name + ".mlp.2", shape.dropout},
        drop_{name + ".mlp.4", shape.dropout} {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const wide = inner_drop_(at::gelu(expand_(norm_(x, frame), frame)), frame);
    return x + drop_(reduce_(wide, frame), frame);
  }

 private:
  LayerNorm norm_;
  Linear expand_, reduce_;
  Dropout inner_drop_, drop_;
};

/// Logits from the class token alone. Weights of 0: the first loss is ln(classes).
class Head final : public Block {
 public:
  Head(std::int64_t width, std::int64_t classes)
      : Block("heads"),
        norm_(declare_, "encoder.ln", width, kEpsilon),
        linear_(declare_, "heads.head", {.in = width, .out = classes}, Initialiser::constant(0),
                Initialiser::constant(0)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(norm_(x.select(1, 0), frame), frame);
  }

 private:
  LayerNorm norm_;
  Linear linear_;
};

/// Files of older torchvision call the layers of the MLP otherwise.
std::string declared_name(std::string const& name) {
  auto renamed = name;
  for (auto const& [old, present] :
       {std::pair<std::string, std::string>{".mlp.linear_1.", ".mlp.0."},
        {".mlp.linear_2.", ".mlp.3."}})
    if (auto const at = renamed.find(old); at != std::string::npos)
      renamed.replace(at, old.size(), present);
  return renamed;
}

}  // namespace

Model make_vit(std::string const& name, VitShape const& shape, InputShape const& input,
               std::int64_t classes) {
  Model model{.name = name,
              .head = {"heads.head.weight", "heads.head.bias"},
              .declared_name = declared_name};
  model.blocks.push_back(std::make_unique<Patches>(shape, input));
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    auto const layer = str("encoder.layers.encoder_layer_", i);
    model.blocks.push_back(std::make_unique<AttentionHalf>(layer, shape));
    model.blocks.push_back(std::make_unique<MlpHalf>(layer, shape));
  }
  model.blocks.push_back(std::make_unique<Head>(shape.width, classes));
  return model;
}

}  // namespace stratagem
