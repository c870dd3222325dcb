#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem {

/// The loss of a batch of n samples and what the backward pass starts from; all on the logits'
/// device.
struct CrossEntropy {
  at::Tensor loss;      ///< scalar: mean of -log softmax(logits)[label], not scaled
  at::Tensor correct;   ///< scalar of the same type: samples whose largest logit is the label's
  at::Tensor gradient;  ///< [n, classes] of the logits' type: d(scale loss) / d(logits)
};

/// `logits` [n, classes], `labels` int64 [n]. Computed in fp32, or in fp64 for fp64 logits.
CrossEntropy cross_entropy(at::Tensor const& logits, at::Tensor const& labels, double scale = 1);

}  // namespace stratagem
