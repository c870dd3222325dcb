#pragma once

#include <optional>

#include "optim/loss_scaler.hpp"
#include "optim/optim_config.hpp"
#include "optim/sgd.hpp"
#include "strategy/replica.hpp"

namespace stratagem {

/// From summed gradients to updated parameters of a replica: mean over workers and micro-batches,
/// loss scaling, clipping, SGD.
class Update {
 public:
  /// `terms`: how many means over samples a gradient is the sum of: workers x micro-batches, or for
  /// `reduction: sum` the micro-batches alone.
  Update(OptimizerConfig const& optimizer, PrecisionConfig const& precision, int workers,
         int micro_batches, Replica& replica);

  /// What the loss is to be multiplied with before the backward pass.
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }

  /// True when a range may be updated as soon as its gradients are there: nothing has to be known
  /// of the others. Not on a GPU, where the host learns late whether the loss was finite.
  bool by_range() const { return by_range_; }
  void range(FlatRange range, at::Tensor const& gradients, double lr);
  /// All at once. False when the step was skipped because scaled gradients overflowed.
  /// AgreedError(non_finite) when they are not finite for another reason.
  bool whole(at::Tensor const& gradients, double lr);

  at::Tensor const& momentum() const { return sgd_.momentum(); }

 private:
  /// sqrt of the sum of squares, the same for every cut and order; NaN when not finite.
  static double norm(at::Tensor const& gradients);

  Replica& replica_;
  Sgd sgd_;
  std::optional<LossScaler> scaler_;
  double clip_norm_;
  double mean_;  ///< 1 / terms
  bool by_range_;
};

/// True when the loss is scaled under this precision.
bool scales_loss(PrecisionConfig const& precision);

}  // namespace stratagem
