#include "strategy/update.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "gpu/memory.hpp"
#include "optim/exact_square_sum.hpp"
#include "strategy/model_layout.hpp"

namespace stratagem {
namespace {

constexpr char scale_name[] = "loss_scale", good_steps_name[] = "loss_scale_good_steps";

Sgd make_sgd(OptimizerConfig const& config, PrecisionConfig const& precision, std::int64_t owned,
             gpu::Device const& device) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::optimizer, device);
  auto const options =
      at::TensorOptions().device(device.torch()).dtype(master_type(precision.compute));
  return {config, owned, options};
}

ExactSquareSum square_sum(std::span<at::Tensor const> gradients) {
  ExactSquareSum sum;
  for (auto const& gradient : gradients) {
    auto const count = static_cast<std::size_t>(gradient.numel());
    if (gradient.scalar_type() == at::kDouble)
      sum.add(std::span(gradient.data_ptr<double>(), count));
    else
      sum.add(std::span(gradient.data_ptr<float>(), count));
  }
  return sum;
}

/// Sum of squares on a GPU, fp64 scalar.
at::Tensor device_square_sum(std::span<at::Tensor const> gradients) {
  at::Tensor sum;
  for (auto const& gradient : gradients) {
    auto const square = at::linalg_vector_norm(gradient).to(at::kDouble).square();
    sum = sum.defined() ? sum + square : square;
  }
  return sum;
}

}  // namespace

bool scales_loss(PrecisionConfig const& precision) {
  bool const half = precision.compute == Precision::fp16 || precision.compute == Precision::bf16;
  return half && precision.loss_scale == LossScale::dynamic;
}

Update::Update(OptimizerConfig const& optimizer, PrecisionConfig const& precision, int workers,
               int micro_batches, std::int64_t owned, gpu::Device const& device)
    : sgd_(make_sgd(optimizer, precision, owned, device)), clip_norm_(optimizer.clip_norm) {
  if (scales_loss(precision)) scaler_.emplace();
  mean_ = 1.0 / (optimizer.reduction == Reduction::mean ? workers * micro_batches : micro_batches);
  scale_ = mean_;
  by_range_ = device.kind == gpu::DeviceKind::cpu && !needs_norm();
}

bool Update::admit(double norm) {
  scale_ = mean_ / loss_scale();
  if (!needs_norm()) return true;
  double const length = norm * scale_;
  bool const finite = std::isfinite(length);
  if (!finite && !scaler_)
    throw AgreedError(ExitCode::non_finite, "the gradient is not finite",
                      "its norm cannot be clipped", "lower optimizer.lr or look at the data");
  if (scaler_ && !scaler_->update(!finite))
    throw AgreedError(ExitCode::non_finite, "the gradient is not finite",
                      "the loss scale is at its minimum", "lower optimizer.lr, or compute in fp32");
  // As torch.nn.utils.clip_grad_norm_ has it.
  if (finite && clip_norm_ > 0) scale_ *= std::min(1.0, clip_norm_ / (length + 1e-6));
  return finite;
}

std::map<std::string, double> Update::counters() const {
  if (!scaler_) return {};
  return {{scale_name, scaler_->scale()},
          {good_steps_name, static_cast<double>(scaler_->good_steps())}};
}

void Update::load(std::map<std::string, double> const& counters) {
  auto const scale = counters.find(scale_name), good = counters.find(good_steps_name);
  if (scaler_ && scale != counters.end() && good != counters.end())
    scaler_.emplace(scale->second, static_cast<std::int64_t>(good->second));
}

void Update::apply(FlatRange range, at::Tensor const& parameters, at::Tensor const& gradients,
                   double lr) {
  sgd_.step(range, parameters, gradients, lr, scale_);
}

double gradient_norm(std::span<at::Tensor const> gradients) {
  if (gradients.empty()) return 0;
  if (!gradients.front().is_cpu()) return std::sqrt(device_square_sum(gradients).item<double>());
  return std::sqrt(square_sum(gradients).value());
}

double gradient_norm(std::span<at::Tensor const> own, Communicator& communicator) {
  if (own.empty()) return 0;
  if (!own.front().is_cpu()) {
    auto const sum = device_square_sum(own).reshape({1});
    communicator.all_reduce(sum).wait_on_stream();
    return std::sqrt(sum.item<double>());
  }
  auto sum = square_sum(own);
  auto const bins = sum.bins();
  auto const memory =
      at::from_blob(bins.data(), {static_cast<std::int64_t>(bins.size())}, at::kLong);
  communicator.all_reduce(memory).wait_on_stream();
  return std::sqrt(sum.value());
}

}  // namespace stratagem
