#include "optim/optimizer.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "optim/adamw/adamw.hpp"
#include "optim/sgd/sgd.hpp"

namespace stratagem {
namespace {

template <class... Parts>
std::unique_ptr<Optimizer> make(SgdConfig const& rule, Parts const&... parts) {
  return std::make_unique<Sgd>(rule, parts...);
}

template <class... Parts>
std::unique_ptr<Optimizer> make(AdamwConfig const& rule, Parts const&... parts) {
  return std::make_unique<Adamw>(rule, parts...);
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(OptimizerConfig const& config,
                                          OwnedElements const& elements,
                                          at::TensorOptions const& options) {
  return std::visit([&](auto const& rule) { return make(rule, config, elements, options); },
                    config.rule);
}

Optimizer::Optimizer(OptimizerConfig const& config, OwnedElements const& elements,
                     at::TensorOptions const& options)
    : weight_decay_(config.weight_decay) {
  if (config.decay == Decay::weights && weight_decay_ != 0) undecayed_ = elements.vectors;
  std::ranges::sort(undecayed_, {}, &FlatRange::begin);
  for (auto const& kind : state_kinds(config))
    state_.emplace_back(kind, at::zeros({elements.size}, options));
}

void Optimizer::update(FlatRange range, at::Tensor const& parameters, at::Tensor const& gradients,
                       double lr, double scale, std::optional<at::Tensor> const& refusal) {
  expects(parameters.numel() == range.size() && gradients.numel() == range.size() &&
              parameters.is_contiguous() && gradients.is_contiguous() &&
              gradients.scalar_type() == parameters.scalar_type(),
          "parameters and gradients of the range");
  at::NoGradGuard const no_grad;
  auto const update_part = [&](FlatRange part, double weight_decay) {
    if (part.size() <= 0) return;
    auto const of = [&](at::Tensor const& whole) {
      return whole.narrow(0, part.begin - range.begin, part.size());
    };
    update_piece(part,
                 {.parameters = of(parameters),
                  .gradients = of(gradients),
                  .state = {},
                  .lr = lr,
                  .scale = scale,
                  .weight_decay = weight_decay},
                 refusal);
  };
  auto begin = range.begin;
  for (auto const& vector : undecayed_) {
    auto const part = overlap(vector, range);
    if (part.size() <= 0) continue;
    update_part({begin, part.begin}, weight_decay_);
    update_part(part, 0);
    begin = part.end;
  }
  update_part({begin, range.end}, weight_decay_);
}

void Optimizer::update_piece(FlatRange range, Piece piece,
                             std::optional<at::Tensor> const& refusal) {
  for (auto const& [_, whole] : state_)
    piece.state.push_back(whole.narrow(0, range.begin, range.size()));
  if (piece.parameters.is_cpu()) {
    finite_ = update_on_cpu(piece) && finite_;
    return;
  }
  if (piece.scale != 1) piece.gradients.mul_(piece.scale);
  update_on_gpu(piece, refusal);
}

}  // namespace stratagem
