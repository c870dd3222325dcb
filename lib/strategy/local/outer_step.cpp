#include "strategy/local/outer_step.hpp"

#include <ATen/ATen.h>

#include "gpu/memory.hpp"

namespace stratagem {

OuterStep::OuterStep(double lr, double momentum, std::int64_t numel, at::ScalarType type,
                     gpu::Device const& device)
    : lr_(lr), momentum_(momentum) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::optimizer, device);
  begin_ = at::zeros({numel}, at::TensorOptions().dtype(type).device(device.torch()));
  sum_ = at::zeros_like(begin_);
}

void OuterStep::begin_at(at::Tensor const& parameters) {
  begin_.copy_(parameters);
  sum_.zero_();
}

bool OuterStep::has_begun() const {
  return begin_.any().item<bool>();
}

/// `mean` holds d meanwhile.
void OuterStep::apply(FlatRange range, at::Tensor const& mean) {
  at::NoGradGuard const no_grad;
  auto const begin = begin_.narrow(0, range.begin, range.size());
  auto const sum = sum_.narrow(0, range.begin, range.size());
  mean.neg_().add_(begin);
  sum.mul_(momentum_).add_(mean);
  mean.add_(sum, momentum_);
  begin.sub_(mean, lr_);
  mean.copy_(begin);
}

}  // namespace stratagem
