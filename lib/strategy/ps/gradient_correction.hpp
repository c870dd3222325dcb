#pragma once

#include <ATen/core/Tensor.h>

#include "optim/optimizer.hpp"
#include "strategy/ps/policy/server_policy.hpp"

namespace stratagem {

/// What a server makes of a gradient, element by element, because the parameters have moved since
/// it was computed; with what it keeps for that. 1-D CPU tensors of the shard's size.
class GradientCorrection {
 public:
  /// `parameters`: of the size and type that it will correct gradients for.
  GradientCorrection(ServerPolicy const& policy, at::Tensor const& parameters);

  /// Corrects `gradient`, 1 / `factor` of the true one, which was computed with `base`.
  void correct(at::Tensor const& gradient, at::Tensor const& parameters, at::Tensor const& base,
               double factor);
  /// Of the kinds that ServerPolicy::state_kinds() names, in that order.
  OptimizerState const& state() const { return state_; }

 private:
  /// Delay compensation by g + lambda g g (p - base).
  void compensate(at::Tensor const& gradient, at::Tensor const& parameters, at::Tensor const& base,
                  double factor);
  at::Tensor const& kept(char const* kind) const;

  ServerPolicy policy_;
  OptimizerState state_;
};

}  // namespace stratagem
