#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem {

/// The loss of n labels and what the backward pass starts from; all on the logits' device.
struct CrossEntropy {
  at::Tensor loss;      ///< scalar: mean of -log softmax(logits)[label], not scaled
  at::Tensor correct;   ///< scalar of the same type: labels that have the largest logit
  at::Tensor gradient;  ///< as the logits, and of their type: d(scale loss) / d(logits)
};

/// `logits` [..., classes], `labels` int64 [...]. Computed in fp32, or in fp64 for fp64 logits.
/// Many logits are gone through by rows, or on a GPU by kernels of their own: there is no copy of
/// them but the gradient.
CrossEntropy cross_entropy(at::Tensor const& logits, at::Tensor const& labels, double scale = 1);

/// fp64 on the logits' device: sum of -log softmax(logits)[label], and labels that have the largest
/// logit; computed in fp64, by rows.
struct LossSums {
  at::Tensor loss, correct;
};
LossSums loss_sums(at::Tensor const& logits, at::Tensor const& labels);

}  // namespace stratagem
