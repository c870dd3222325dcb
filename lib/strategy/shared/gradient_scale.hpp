#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "optim/loss_scaler.hpp"
#include "optim/optim_config.hpp"

namespace stratagem {

/// True when the loss is scaled under this precision.
bool scales_loss(PrecisionConfig const& precision);

/// What gradients are multiplied with before they are applied: the mean over the terms that they
/// are sums of, the loss scale undone, clipping. Everybody who is told the same norms has the same.
class GradientScale {
 public:
  /// `terms`: that a gradient is the mean of.
  GradientScale(OptimizerConfig const& optimizer, PrecisionConfig const& precision, int terms);

  /// What the loss is to be multiplied with before the backward pass.
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }

  /// True when the norm of all of a gradient has to be known before any of it is applied.
  bool needs_norm() const { return scaler_.has_value() || clip_norm_ > 0; }
  /// With the norm of all that was summed up, once per gradient where needs_norm(). False when it
  /// is not to be applied: it overflowed under the loss scale, or there is a problem().
  bool admit(double norm);
  /// Why training cannot continue: what was not admitted was not finite for another reason.
  std::optional<Error> const& problem() const { return problem_; }

  /// Of the gradient admitted last; where none needs to be, of every one.
  double value() const { return value_; }

  /// What the next step depends on: the state of the loss scale, where there is one.
  std::map<std::string, double*> counters();
  static constexpr char scale_name[] = "loss_scale", good_steps_name[] = "loss_scale_good_steps";

 private:
  std::optional<LossScaler> scaler_;
  double clip_norm_;
  double mean_;  ///< 1 / terms
  double value_;
  std::optional<Error> problem_;
};

}  // namespace stratagem
