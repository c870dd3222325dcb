#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "strategy/ddp/ddp_plan.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Sums over ranks of gradients, bucket by bucket, as they are or in a code. Whatever travels: all
/// ranks end with the same sums, so replicas stay alike, and `serial` with the same `compression`
/// makes the same, bit for bit.
class GradientSums {
 public:
  virtual ~GradientSums() = default;

  /// Whether the last bucket takes the status along.
  virtual bool takes_status() const { return false; }

  /// Begins the sum of a bucket of `gradients`, which are laid out as the parameters.
  /// Buckets in their order; not before finish() of the step before.
  virtual void begin(std::size_t bucket, at::Tensor const& gradients, std::int64_t step) = 0;
  /// Goes on with what has arrived.
  virtual void advance() {}
  /// Waits until the bucket's gradients are the sum. Buckets in their order.
  virtual void finish(std::size_t bucket) = 0;

  /// What is kept for the next step.
  virtual std::vector<ParameterState> state() const = 0;
};

/// As the plan has it, over the ranks of `group`. `reduced`: status and gradients, one behind the
/// other. AgreedError(environment) for a code on a GPU.
std::unique_ptr<GradientSums> make_gradient_sums(DdpPlan const& plan, StrategyParts const& parts,
                                                 ParameterLayout const& layout,
                                                 at::Tensor const& reduced, Communicator& group);

}  // namespace stratagem
