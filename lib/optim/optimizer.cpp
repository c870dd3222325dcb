#include "optim/optimizer.hpp"

#include <algorithm>
#include <span>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "gpu/device.hpp"
#include "optim/adamw/adamw.hpp"
#include "optim/device_update.hpp"
#include "optim/elementwise.hpp"
#include "optim/host_update.hpp"
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

/// All of `range`, counted from its begin, in order. `undecayed`: ascending.
std::vector<UpdatedPiece> pieces_of(FlatRange range, std::span<FlatRange const> undecayed) {
  std::vector<UpdatedPiece> pieces;
  auto const add = [&](FlatRange part, bool decays) {
    if (part.size() > 0)
      pieces.push_back({{part.begin - range.begin, part.end - range.begin}, decays});
  };
  auto begin = range.begin;
  for (auto const& vector : undecayed) {
    auto const part = overlap(vector, range);
    if (part.size() <= 0) continue;
    add({begin, part.begin}, true);
    add(part, false);
    begin = part.end;
  }
  add({begin, range.end}, true);
  return pieces;
}

RoundedCopy rounded_copy(at::Tensor const& rounded) {
  if (!rounded.defined()) return {};
  expects(rounded.scalar_type() == at::kBFloat16 || rounded.scalar_type() == at::kHalf,
          "a copy in 16 bit");
  return {rounded.data_ptr(),
          rounded.scalar_type() == at::kHalf ? RoundedCopy::Type::fp16 : RoundedCopy::Type::bf16};
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
    : type_(c10::typeMetaToScalarType(options.dtype())), weight_decay_(config.weight_decay) {
  if (config.decay == Decay::weights && weight_decay_ != 0) undecayed_ = elements.vectors;
  std::ranges::sort(undecayed_, {}, &FlatRange::begin);
  for (auto const& kind : state_kinds(config))
    state_.emplace_back(kind, at::zeros({elements.size}, options));
}

void Optimizer::update(FlatRange range, at::Tensor const& parameters, at::Tensor const& gradients,
                       double lr, double scale, std::optional<at::Tensor> const& refusal,
                       at::Tensor const& rounded) {
  auto const fits = [&](at::Tensor const& tensor) {
    return tensor.numel() == range.size() && tensor.is_contiguous();
  };
  expects(fits(parameters) && fits(gradients) && (!rounded.defined() || fits(rounded)) &&
              parameters.scalar_type() == type_ && gradients.scalar_type() == type_,
          "parameters and gradients of the range");
  at::NoGradGuard const no_grad;
  auto const decaying = rule(type_, lr, scale, weight_decay_), other = rule(type_, lr, scale, 0);
  UpdatedMemory memory{parameters.data_ptr(), gradients.const_data_ptr(), {}};
  for (std::size_t kind = 0; kind < state_.size(); ++kind)
    memory.state[kind] = state_[kind].second.narrow(0, range.begin, range.size()).data_ptr();
  auto const pieces = pieces_of(range, undecayed_);

  if (!parameters.is_cpu())
    return update_on_device({decaying, other, memory, rounded_copy(rounded),
                             refusal ? refusal->const_data_ptr<float>() : nullptr},
                            pieces, gpu::Device::of(parameters.device()));
  for (auto const& piece : pieces) {
    auto const& rule_of_piece = piece.decays ? decaying : other;
    auto const first = piece.range.begin;
    bool const finite = for_slices(piece.range.size(), [&](std::int64_t begin, std::int64_t end) {
      return update_on_host(rule_of_piece, memory, first + begin, first + end);
    });
    finite_ = finite_ && finite;
  }
  if (rounded.defined()) rounded.copy_(parameters);
}

}  // namespace stratagem
