#include "model/zoo/gpt2.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "model/attention.hpp"
#include "model/layers.hpp"
#include "model/linear.hpp"
#include "model/zoo/experts.hpp"

namespace stratagem {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kStddev = 0.02;  // of all matrices and embeddings but the projections below
constexpr char kTokens[] = "transformer.wte.weight";

/// What is added to the residual stream starts smaller, the more layers add to it.
Initialiser projection(Gpt2Shape const& shape) {
  return Initialiser::normal(kStddev / std::sqrt(2.0 * static_cast<double>(shape.layers)));
}

/// A linear layer whose weight is stored as [in, out].
struct Conv1d {
  Conv1d(Declaration& declare, std::string const& prefix, std::int64_t in, std::int64_t out,
         Initialiser init)
      : weight(declare.parameter({prefix + ".weight", {in, out}, init})),
        bias(declare.parameter({prefix + ".bias", {out}, Initialiser::constant(0)})) {}

  at::Tensor operator()(at::Tensor const& x, Frame const& frame) const {
    return linear(x, frame, weight, bias, WeightLayout::in_out);
  }

  int weight, bias;
};

class Embedding final : public Block {
 public:
  explicit Embedding(Gpt2Shape const& shape)
      : Block("transformer.embedding"),
        tokens_(declare_.parameter({kTokens, {shape.vocabulary, shape.width}, init()})),
        positions_(
            declare_.parameter({"transformer.wpe.weight", {shape.context, shape.width}, init()})),
        drop_{"transformer.drop", shape.dropout} {}

  /// int64 [n, T] -> [n, T, width].
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const& tokens = frame.parameters[static_cast<std::size_t>(tokens_)];
    auto const& positions = frame.parameters[static_cast<std::size_t>(positions_)];
    return drop_(at::embedding(tokens, x) + positions.narrow(0, 0, x.size(1)), frame);
  }

 private:
  static Initialiser init() { return Initialiser::normal(kStddev); }

  int tokens_, positions_;
  Dropout drop_;
};

/// x + attention(norm(x)), where a token sees itself and those before it.
class AttentionHalf final : public Block {
 public:
  AttentionHalf(std::string const& name, Gpt2Shape const& shape)
      : Block(name + ".attn"),
        heads_(shape.heads),
        norm_(declare_, name + ".ln_1", shape.width, kEpsilon),
        inputs_(declare_, name + ".attn.c_attn", shape.width, 3 * shape.width,
                Initialiser::normal(kStddev)),
        output_(declare_, name + ".attn.c_proj", shape.width, shape.width, projection(shape)),
        drop_{name + ".attn.resid_dropout", shape.dropout} {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const joined = inputs_(norm_(x, frame), frame);
    auto const seen = self_attention(joined, heads_, Attends::to_earlier);
    return x + drop_(output_(seen, frame), frame);
  }

 private:
  std::int64_t heads_;
  LayerNorm norm_;
  Conv1d inputs_, output_;
  Dropout drop_;
};

/// x + mlp(norm(x)).
class MlpHalf final : public Block {
 public:
  MlpHalf(std::string const& name, Gpt2Shape const& shape)
      : Block(name + ".mlp"),
        norm_(declare_, name + ".ln_2", shape.width, kEpsilon),
        expand_(declare_, name + ".mlp.c_fc", shape.width, 4 * shape.width,
                Initialiser::normal(kStddev)),
        reduce_(declare_, name + ".mlp.c_proj", 4 * shape.width, shape.width, projection(shape)),
        drop_{name + ".mlp.dropout", shape.dropout} {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const wide = at::gelu(expand_(norm_(x, frame), frame), "tanh");
    return x + drop_(reduce_(wide, frame), frame);
  }

 private:
  LayerNorm norm_;
  Conv1d expand_, reduce_;
  Dropout drop_;
};

class Head final : public Block {
 public:
  explicit Head(Gpt2Shape const& shape)
      : Block("lm_head"),
        norm_(declare_, "transformer.ln_f", shape.width, kEpsilon),
        weight_(shape.tie ? declare_.borrow(kTokens)
                          : declare_.parameter({"lm_head.weight",
                                                {shape.vocabulary, shape.width},
                                                Initialiser::normal(kStddev)})) {}

  /// [n, T, width] -> [n, T, vocabulary].
  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear(norm_(x, frame), frame, weight_, -1);
  }

 private:
  LayerNorm norm_;
  int weight_;
};

/// Hugging Face names tensors with "transformer." or without, and keeps masks among them.
std::string declared_name(std::string const& name) {
  if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) return {};
  bool const whole = name.starts_with("transformer.") || name.starts_with("lm_head.");
  return whole ? name : "transformer." + name;
}

std::string card_of(Gpt2Shape const& shape) {
  nlohmann::ordered_json const card{{"architectures", {"GPT2LMHeadModel"}},
                                    {"model_type", "gpt2"},
                                    {"activation_function", "gelu_new"},
                                    {"attn_pdrop", 0.0},
                                    {"embd_pdrop", shape.dropout},
                                    {"resid_pdrop", shape.dropout},
                                    {"initializer_range", kStddev},
                                    {"layer_norm_epsilon", kEpsilon},
                                    {"n_ctx", shape.context},
                                    {"n_embd", shape.width},
                                    {"n_head", shape.heads},
                                    {"n_inner", 4 * shape.width},
                                    {"n_layer", shape.layers},
                                    {"n_positions", shape.context},
                                    {"scale_attn_weights", true},
                                    {"scale_attn_by_inverse_layer_idx", false},
                                    {"reorder_and_upcast_attn", false},
                                    {"add_cross_attention", false},
                                    {"tie_word_embeddings", shape.tie},
                                    {"torch_dtype", "float32"},
                                    {"vocab_size", shape.vocabulary},
                                    {"bos_token_id", nullptr},
                                    {"eos_token_id", nullptr}};
  return card.dump(2) + "\n";
}

ExpertsShape experts_of(Gpt2Shape const& shape) {
  return {.width = shape.width,
          .experts = shape.experts,
          .norm_eps = kEpsilon,
          .weight_stddev = kStddev,
          .projection_stddev = projection(shape).b,
          .dropout = shape.dropout};
}

/// Of the experts of all layers, those that a token does not meet.
std::int64_t idle_experts(Gpt2Shape const& shape) {
  constexpr std::int64_t met = 2;
  if (shape.experts == 0) return 0;
  auto const of_expert = 8 * shape.width * shape.width + 5 * shape.width;
  return shape.layers / 2 * (shape.experts - met) * of_expert;
}

double train_flops(Model const& model, Gpt2Shape const& shape, std::int64_t tokens) {
  auto const idle = shape.context * shape.width + (shape.tie ? 0 : shape.vocabulary * shape.width) +
                    idle_experts(shape);
  auto const multiplied = model.parameter_count() - idle;
  return 6.0 * static_cast<double>(multiplied) +
         12.0 * static_cast<double>(shape.layers * shape.width * tokens);
}

}  // namespace

Model make_gpt2(std::string const& name, Gpt2Shape const& shape, std::int64_t tokens) {
  Model model{.name = name, .declared_name = declared_name};
  if (shape.experts == 0) model.card = card_of(shape);
  model.waits_for_device = shape.experts > 0;
  if (shape.tie)
    model.tied = {{"lm_head.weight", kTokens}};
  else
    model.head = {"lm_head.weight"};
  model.blocks.push_back(std::make_unique<Embedding>(shape));
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    auto const layer = str("transformer.h.", i);
    model.blocks.push_back(std::make_unique<AttentionHalf>(layer, shape));
    if (shape.experts > 0 && i % 2 == 1)
      model.blocks.push_back(make_experts_half(layer, experts_of(shape)));
    else
      model.blocks.push_back(std::make_unique<MlpHalf>(layer, shape));
  }
  model.blocks.push_back(std::make_unique<Head>(shape));
  model.train_flops = train_flops(model, shape, tokens);
  return model;
}

}  // namespace stratagem
