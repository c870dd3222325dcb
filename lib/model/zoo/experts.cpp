#include "model/zoo/experts.hpp"

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/layers.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t chosen = 2;            // experts of a token
constexpr double balance_coefficient = 0.01;  // of the loss that balances experts

/// Passes x on, and lets the backward pass begin at `extra`, too, with the gradient `scale`.
class ExtraLoss : public torch::autograd::Function<ExtraLoss> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor const& x,
                            at::Tensor const& extra, double scale) {
    context->saved_data["like"] = extra.detach();
    context->saved_data["scale"] = scale;
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list const& gradients) {
    auto const like = context->saved_data["like"].toTensor();
    auto const scale = context->saved_data["scale"].toDouble();
    return {gradients[0], at::full_like(like, scale), at::Tensor()};
  }
};

class ExpertsHalf final : public Block {
 public:
  ExpertsHalf(std::string const& layer, ExpertsShape const& shape)
      : Block(layer + ".mlp"),
        experts_(shape.experts),
        norm_(declare_, layer + ".ln_2", shape.width, shape.norm_eps),
        router_(declare_.parameter({layer + ".mlp.router.weight",
                                    {shape.width, shape.experts},
                                    Initialiser::normal(shape.weight_stddev)})),
        expand_(stack(layer + ".mlp.experts.c_fc", shape, shape.width, 4 * shape.width,
                      shape.weight_stddev)),
        reduce_(stack(layer + ".mlp.experts.c_proj", shape, 4 * shape.width, shape.width,
                      shape.projection_stddev)),
        counts_(declare_.buffer({layer + ".mlp.tokens_per_expert", {shape.experts}, at::kLong, 0})),
        drop_{layer + ".mlp.dropout", shape.dropout} {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto const tokens = norm_(x, frame).flatten(0, 1);
    auto scores = at::mm(tokens, of(frame, router_));
    if (scores.element_size() == 2) scores = scores.to(at::kFloat);
    auto const [highest, experts] = scores.topk(chosen, 1);
    auto const weights = highest.softmax(1).to(x.scalar_type());
    auto mixed = at::zeros_like(tokens);
    std::vector<std::int64_t> counts;
    for (std::int64_t expert = 0; expert < experts_; ++expert) {
      auto const places = experts.eq(expert).nonzero();  // of choices, in order of tokens
      counts.push_back(places.size(0));
      if (places.size(0) == 0) continue;
      auto const own = places.select(1, 0);
      auto const weight = weights.index({own, places.select(1, 1)}).unsqueeze(1);
      auto const y = compute(expert, tokens.index_select(0, own), frame);
      mixed = mixed.index_add(0, own, y * weight);
    }
    auto const y = x + drop_(mixed.view(x.sizes()), frame);
    return frame.context.training ? balanced(y, scores, counts, frame) : y;
  }

 private:
  /// Weights [experts, in, out] and biases [experts, out].
  struct Stack {
    int weight, bias;
  };

  Stack stack(std::string const& prefix, ExpertsShape const& shape, std::int64_t in,
              std::int64_t out, double stddev) {
    auto const weight = declare_.parameter(
        {prefix + ".weight", {shape.experts, in, out}, Initialiser::normal(stddev)});
    auto const bias = declare_.parameter({.name = prefix + ".bias",
                                          .shape = {shape.experts, out},
                                          .initialiser = Initialiser::constant(0),
                                          .stacked = true});
    return {weight, bias};
  }

  static at::Tensor const& of(Frame const& frame, int index) {
    return frame.parameters[static_cast<std::size_t>(index)];
  }

  at::Tensor compute(std::int64_t expert, at::Tensor const& x, Frame const& frame) const {
    auto const layer = [&](at::Tensor const& input, Stack const& of_all) {
      return at::addmm(of(frame, of_all.bias).select(0, expert), input,
                       of(frame, of_all.weight).select(0, expert));
    };
    return layer(at::gelu(layer(x, expand_), "tanh"), reduce_);
  }

  /// y, with the loss that balances the experts; counts what they were given.
  at::Tensor balanced(at::Tensor const& y, at::Tensor const& scores,
                      std::vector<std::int64_t> const& counts, Frame const& frame) const {
    auto const given = at::tensor(counts, at::kLong).to(y.device());
    {
      at::NoGradGuard const no_grad;
      frame.buffers[static_cast<std::size_t>(counts_)].add_(given);
    }
    auto const shares =
        given.to(scores.scalar_type()) / static_cast<double>(chosen * scores.size(0));
    auto const loss = (shares * scores.softmax(1).mean(0)).sum() *
                      (balance_coefficient * static_cast<double>(experts_));
    return ExtraLoss::apply(y, loss, frame.context.loss_scale);
  }

  std::int64_t experts_;
  LayerNorm norm_;
  int router_;
  Stack expand_, reduce_;
  int counts_;
  Dropout drop_;
};

}  // namespace

std::unique_ptr<Block> make_experts_half(std::string const& layer, ExpertsShape const& shape) {
  return std::make_unique<ExpertsHalf>(layer, shape);
}

}  // namespace stratagem
