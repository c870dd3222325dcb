#pragma once

#include <memory>

#include "optim/optimizer.hpp"
#include "strategy/ps/parameter_store.hpp"

namespace stratagem {

/// What a worker that reads cached parameters makes of them with its own gradients, so that it sees
/// its own updates before the next pull: what the servers make of their parameters with the same
/// gradient. A rule that keeps nothing: check_ps().
class OwnUpdates {
 public:
  /// `options`: of the parameters.
  OwnUpdates(ServerPolicy const& policy, OptimizerConfig const& optimizer,
             OwnedElements const& elements, at::TensorOptions const& options);

  /// Both 1-D, of all elements.
  void apply(at::Tensor const& parameters, at::Tensor const& gradients, PushScale const& scale);

 private:
  int pushes_;
  std::unique_ptr<Optimizer> rule_;
};

/// For policies with cached reads, else none.
std::unique_ptr<OwnUpdates> make_own_updates(ServerPolicy const& policy,
                                             OptimizerConfig const& optimizer,
                                             OwnedElements const& elements,
                                             at::TensorOptions const& options);

}  // namespace stratagem
