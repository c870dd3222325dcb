#include "strategy/shared/update.hpp"

#include <cmath>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "gpu/memory.hpp"
#include "optim/exact_square_sum.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

std::unique_ptr<Optimizer> make_optimizer(OptimizerConfig const& config,
                                          PrecisionConfig const& precision,
                                          OwnedElements const& owned, gpu::Device const& device) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::optimizer, device);
  auto const options =
      at::TensorOptions().device(device.torch()).dtype(master_type(precision.compute));
  return stratagem::make_optimizer(config, owned, options);
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

int terms_of_mean(OptimizerConfig const& optimizer, int workers, int micro_batches) {
  return optimizer.reduction == Reduction::mean ? workers * micro_batches : micro_batches;
}

Update::Update(OptimizerConfig const& optimizer, PrecisionConfig const& precision, int workers,
               int micro_batches, OwnedElements const& owned, gpu::Device const& device)
    : optimizer_(make_optimizer(optimizer, precision, owned, device)),
      scale_(optimizer, precision, terms_of_mean(optimizer, workers, micro_batches)),
      way_(scale_.needs_norm()                   ? Way::by_decision
           : device.kind == gpu::DeviceKind::cpu ? Way::by_range
                                                 : Way::guarded) {}

std::map<std::string, double*> Update::counters() {
  auto all = optimizer_->counters();
  all.merge(scale_.counters());
  return all;
}

bool Update::admit(double norm) {
  bool const admitted = scale_.admit(norm);
  if (auto const& problem = scale_.problem()) throw AgreedError(*problem);
  return admitted;
}

void Update::apply(FlatRange range, at::Tensor const& parameters, at::Tensor const& gradients,
                   double lr, std::optional<at::Tensor> const& refusal) {
  optimizer_->update(range, parameters, gradients, lr, scale_.value(), refusal);
}

void Update::apply(FlatRange range, Replica& replica, at::Tensor const& gradients, double lr,
                   std::optional<at::Tensor> const& refusal) {
  auto const rounded = replica.rounded(range);
  optimizer_->update(range, replica.flat().narrow(0, range.begin, range.size()), gradients, lr,
                     scale_.value(), refusal, rounded);
  if (!rounded.defined()) replica.refresh(range);
}

double gradient_norm(std::span<at::Tensor const> gradients) {
  if (gradients.empty()) return 0;
  if (!gradients.front().is_cpu()) return std::sqrt(device_square_sum(gradients).item<double>());
  return std::sqrt(square_sum(gradients).value());
}

double gradient_norm(std::span<at::Tensor const> own,
                     std::function<void(at::Tensor const&)> const& add_up) {
  if (!own.empty() && !own.front().is_cpu()) {
    auto const sum = device_square_sum(own).reshape({1});
    add_up(sum);
    return std::sqrt(sum.item<double>());
  }
  auto sum = square_sum(own);
  auto const bins = sum.bins();
  add_up(at::from_blob(bins.data(), {static_cast<std::int64_t>(bins.size())}, at::kLong));
  return std::sqrt(sum.value());
}

double gradient_norm(std::span<at::Tensor const> own, Communicator& communicator) {
  return gradient_norm(
      own, [&](at::Tensor const& sum) { communicator.all_reduce(sum).wait_on_stream(); });
}

}  // namespace stratagem
