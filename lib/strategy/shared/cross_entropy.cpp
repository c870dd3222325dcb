#include "strategy/shared/cross_entropy.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace stratagem {

CrossEntropy cross_entropy(at::Tensor const& logits, at::Tensor const& labels, double scale) {
  auto const leaf = logits.detach().requires_grad_();
  auto const wide = leaf.scalar_type() == at::kDouble ? leaf : leaf.to(at::kFloat);
  auto const loss = at::cross_entropy_loss(wide, labels);
  auto const seed = at::full_like(loss, scale);
  auto const gradient = torch::autograd::grad({loss}, {leaf}, {seed}).front();
  auto const correct = wide.detach().argmax(1).eq(labels).sum().to(wide.scalar_type());
  return {loss.detach(), correct, gradient};
}

}  // namespace stratagem
