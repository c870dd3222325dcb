#pragma once

#include <map>
#include <string>

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

  /// True where it wants to know by how much updates change parameters.
  bool learns() const { return policy_.weight == ServerPolicy::Weight::inverse_gap; }
  /// An update begins; then, of each part of it: it made `now` of `before`.
  void begin_update();
  void learn(FlatRange range, at::Tensor const& before, at::Tensor const& now);

  /// Of the kinds that ServerPolicy::state_kinds() names, in that order.
  OptimizerState const& state() const { return state_; }
  /// What else the next correction depends on.
  std::map<std::string, double*> counters();

 private:
  /// Delay compensation by g + lambda g g (p - base).
  void compensate(at::Tensor const& gradient, at::Tensor const& parameters, at::Tensor const& base,
                  double factor);
  /// Division by the gap: 1 + |p - base| / C, where C is the root mean square of the changes that
  /// updates make.
  void divide_by_gap(at::Tensor const& gradient, at::Tensor const& parameters,
                     at::Tensor const& base);
  at::Tensor const& kept(char const* kind) const;

  ServerPolicy policy_;
  OptimizerState state_;
  double seen_ = 0;  ///< weight of all updates in the mean square of their changes
};

}  // namespace stratagem
