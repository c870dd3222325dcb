#include "strategy/pass/cross_entropy.hpp"

#include <algorithm>
#include <cstdint>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "gpu/device.hpp"
#include "gpu/layers/cross_entropy.hpp"
#include "model/fused/maps.hpp"
#include "model/landing.hpp"

namespace stratagem {
namespace {

/// Rows of logits that are gone through at once: they fit in a cache, or keep a GPU busy.
std::int64_t rows_at_once(at::Tensor const& rows) {
  std::int64_t const logits = rows.is_cuda() ? 1 << 26 : 1 << 20;
  return std::max<std::int64_t>(logits / rows.size(1), 1);
}

/// visit(first row, rows, labels) for pieces of `rows` [n, classes].
template <class Visit>
void by_rows(at::Tensor const& rows, at::Tensor const& labels, Visit visit) {
  auto const step = rows_at_once(rows);
  for (std::int64_t first = 0; first < rows.size(0); first += step) {
    auto const count = std::min(step, rows.size(0) - first);
    visit(first, rows.narrow(0, first, count), labels.narrow(0, first, count));
  }
}

CrossEntropy at_once(at::Tensor const& logits, at::Tensor const& labels, double scale) {
  auto const leaf = logits.detach().requires_grad_();
  auto const wide = leaf.scalar_type() == at::kDouble ? leaf : leaf.to(at::kFloat);
  auto const loss = at::cross_entropy_loss(wide, labels);
  auto const seed = at::full_like(loss, scale);
  auto const gradient = torch::autograd::grad({loss}, {leaf}, {seed}).front();
  auto const correct = wide.detach().argmax(1).eq(labels).sum().to(wide.scalar_type());
  return {loss.detach(), correct, gradient};
}

/// d(loss) / d(logits) = (softmax(logits) - [label]) scale / n.
CrossEntropy piece_by_piece(at::Tensor const& logits, at::Tensor const& labels, double scale) {
  at::NoGradGuard const no_grad;
  auto const type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  auto const sums = at::zeros({2}, logits.options().dtype(at::kDouble));
  auto const gradient = at::empty_like(logits);
  auto const share = scale / static_cast<double>(logits.size(0));
  auto const minus_one = at::full({1, 1}, -1.0, logits.options().dtype(type));
  by_rows(logits, labels, [&](std::int64_t first, at::Tensor const& rows, at::Tensor const& own) {
    auto const chosen = own.unsqueeze(1);
    auto const log_probabilities = at::log_softmax(rows, 1, type);
    sums[0].sub_(log_probabilities.gather(1, chosen).sum());
    sums[1].add_(rows.argmax(1).eq(own).sum());
    auto const probabilities = log_probabilities.exp_();
    probabilities.scatter_add_(1, chosen, minus_one.expand({rows.size(0), 1}));
    gradient.narrow(0, first, rows.size(0)).copy_(probabilities.mul_(share));
  });
  auto const mean = sums[0] / static_cast<double>(logits.size(0));
  return {mean.to(type), sums[1].to(type), gradient};
}

/// On a GPU.
CrossEntropy by_kernels(at::Tensor const& logits, at::Tensor const& labels, double scale) {
  auto const results = at::empty({2}, logits.options().dtype(at::kFloat));
  auto const of_rows = at::empty({2, logits.size(0)}, results.options());
  auto const gradient = at::empty_like(logits);
  gpu::cross_entropy({.rows = logits.size(0),
                      .classes = logits.size(1),
                      .type = *element_of(logits),
                      .logits = logits.data_ptr(),
                      .labels = labels.data_ptr<std::int64_t>(),
                      .gradient = gradient.data_ptr(),
                      .scale = static_cast<float>(scale),
                      .row_losses = of_rows[0].data_ptr<float>(),
                      .row_correct = of_rows[1].data_ptr<float>(),
                      .loss = results[0].data_ptr<float>(),
                      .correct = results[1].data_ptr<float>()},
                     gpu::Device::of(logits.device()));
  return {results[0], results[1], gradient};
}

}  // namespace

CrossEntropy cross_entropy(at::Tensor const& logits, at::Tensor const& labels, double scale) {
  auto const rows = logits.flatten(0, -2);
  auto const way = rows.is_cuda() && element_of(rows)   ? by_kernels
                   : rows.size(0) <= rows_at_once(rows) ? at_once
                                                        : piece_by_piece;
  auto result = way(rows.contiguous(), labels.flatten().contiguous(), scale);
  result.gradient = result.gradient.view(logits.sizes());
  return result;
}

LossSums loss_sums(at::Tensor const& logits, at::Tensor const& labels) {
  at::NoGradGuard const no_grad;
  auto const zero = at::zeros({}, logits.options().dtype(at::kDouble));
  LossSums sums{zero.clone(), zero.clone()};
  by_rows(logits.flatten(0, -2), labels.flatten(),
          [&](std::int64_t, at::Tensor const& rows, at::Tensor const& own) {
            auto const wide = rows.to(at::kDouble);
            sums.loss.add_(at::cross_entropy_loss(wide, own, {}, at::Reduction::Sum));
            sums.correct.add_(wide.argmax(1).eq(own).sum());
          });
  return sums;
}

}  // namespace stratagem
