#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/work/work.hpp"
#include "strategy/ddp/gradient_sums.hpp"

namespace stratagem {

/// Of gradients as they are: a bucket is one all-reduce. That of the first block takes the status
/// along, which lies in front of it.
class PlainSums final : public GradientSums {
 public:
  /// `reduced`: status and gradients, one behind the other.
  PlainSums(BucketPlan const& buckets, at::Tensor reduced, Communicator& group);

  bool takes_status() const override { return true; }
  void begin(std::size_t bucket, at::Tensor const& gradients, std::int64_t step) override;
  void finish(std::size_t bucket) override;
  std::vector<ParameterState> state() const override { return {}; }

 private:
  std::vector<Bucket> buckets_;
  at::Tensor reduced_;
  Communicator& group_;
  std::vector<Work> works_;  ///< of this step, by bucket
};

}  // namespace stratagem
