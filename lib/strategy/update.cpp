#include "strategy/update.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "gpu/memory.hpp"
#include "optim/exact_square_sum.hpp"

namespace stratagem {
namespace {

Sgd make_sgd(OptimizerConfig const& config, at::Tensor const& parameters) {
  gpu::Device const device{parameters.is_cpu() ? gpu::DeviceKind::cpu : gpu::DeviceKind::cuda,
                           std::max<int>(parameters.device().index(), 0)};
  gpu::MemoryScope const scope(gpu::MemoryCategory::optimizer, device);
  return {config, parameters};
}

}  // namespace

bool scales_loss(PrecisionConfig const& precision) {
  bool const half = precision.compute == Precision::fp16 || precision.compute == Precision::bf16;
  return half && precision.loss_scale == LossScale::dynamic;
}

Update::Update(OptimizerConfig const& optimizer, PrecisionConfig const& precision, int workers,
               int micro_batches, Replica& replica)
    : replica_(replica),
      sgd_(make_sgd(optimizer, replica.flat())),
      clip_norm_(optimizer.clip_norm) {
  if (scales_loss(precision)) scaler_.emplace();
  mean_ = 1.0 / (optimizer.reduction == Reduction::mean ? workers * micro_batches : micro_batches);
  by_range_ = replica.flat().is_cpu() && !scaler_ && clip_norm_ == 0;
}

void Update::range(FlatRange range, at::Tensor const& gradients, double lr) {
  sgd_.step(range, gradients, lr, mean_);
  replica_.refresh(range);
}

bool Update::whole(at::Tensor const& gradients, double lr) {
  double scale = mean_ / loss_scale();
  if (scaler_ || clip_norm_ > 0) {
    double const length = norm(gradients) * scale;
    bool const finite = std::isfinite(length);
    if (!finite && !scaler_)
      throw AgreedError(ExitCode::non_finite, "the gradient is not finite",
                        "its norm cannot be clipped", "lower optimizer.lr or look at the data");
    if (scaler_ && !scaler_->update(!finite))
      throw AgreedError(ExitCode::non_finite, "the gradient is not finite",
                        "the loss scale is at its minimum",
                        "lower optimizer.lr, or compute in fp32");
    if (!finite) return false;
    // As torch.nn.utils.clip_grad_norm_ has it.
    if (clip_norm_ > 0) scale *= std::min(1.0, clip_norm_ / (length + 1e-6));
  }
  FlatRange const all{0, replica_.layout().size()};
  sgd_.step(all, gradients, lr, scale);
  replica_.refresh(all);
  return true;
}

double Update::norm(at::Tensor const& gradients) {
  if (!gradients.is_cpu()) return at::linalg_vector_norm(gradients).item<double>();
  ExactSquareSum sum;
  auto const count = static_cast<std::size_t>(gradients.numel());
  if (gradients.scalar_type() == at::kDouble)
    sum.add(std::span(gradients.data_ptr<double>(), count));
  else
    sum.add(std::span(gradients.data_ptr<float>(), count));
  return std::sqrt(sum.value());
}

}  // namespace stratagem
