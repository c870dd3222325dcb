#include "strategy/ps/own_updates.hpp"

#include <ATen/ATen.h>

#include "base/contract.hpp"

namespace stratagem {

OwnUpdates::OwnUpdates(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                       OwnedElements const& elements, at::TensorOptions const& options)
    : pushes_(policy.pushes), rule_(make_optimizer(optimizer, elements, options)) {
  expects(rule_->state().empty(), "a rule that keeps nothing");
}

void OwnUpdates::apply(at::Tensor const& parameters, at::Tensor const& gradients,
                       PushScale const& scale) {
  rule_->begin_update();
  rule_->update({0, parameters.numel()}, parameters, gradients, scale.lr,
                scale.factor * scale.weight / pushes_);
}

std::unique_ptr<OwnUpdates> make_own_updates(ServerPolicy const& policy,
                                             OptimizerConfig const& optimizer,
                                             OwnedElements const& elements,
                                             at::TensorOptions const& options) {
  if (!policy.cached_reads) return nullptr;
  return std::make_unique<OwnUpdates>(policy, optimizer, elements, options);
}

}  // namespace stratagem
