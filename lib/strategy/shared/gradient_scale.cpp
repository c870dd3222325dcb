#include "strategy/shared/gradient_scale.hpp"

#include <algorithm>
#include <cmath>

namespace stratagem {

bool scales_loss(PrecisionConfig const& precision) {
  bool const half = precision.compute == Precision::fp16 || precision.compute == Precision::bf16;
  return half && precision.loss_scale == LossScale::dynamic;
}

GradientScale::GradientScale(OptimizerConfig const& optimizer, PrecisionConfig const& precision,
                             int terms)
    : clip_norm_(optimizer.clip_norm), mean_(1.0 / terms), value_(mean_) {
  if (scales_loss(precision)) scaler_.emplace();
}

bool GradientScale::admit(double norm) {
  value_ = mean_ / loss_scale();
  double const length = norm * value_;
  bool const finite = std::isfinite(length);
  if (!finite && !scaler_)
    problem_ = Error(ExitCode::non_finite, "the gradient is not finite",
                     "its norm cannot be clipped", "lower optimizer.lr or look at the data");
  if (scaler_ && !scaler_->update(!finite))
    problem_ = Error(ExitCode::non_finite, "the gradient is not finite",
                     "the loss scale is at its minimum", "lower optimizer.lr, or compute in fp32");
  // As torch.nn.utils.clip_grad_norm_ has it.
  if (finite && clip_norm_ > 0) value_ *= std::min(1.0, clip_norm_ / (length + 1e-6));
  return finite;
}

std::map<std::string, double*> GradientScale::counters() {
  if (!scaler_) return {};
  return {{scale_name, &scaler_->state().scale}, {good_steps_name, &scaler_->state().good_steps}};
}

}  // namespace stratagem
