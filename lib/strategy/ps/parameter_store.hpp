#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "optim/sgd.hpp"
#include "strategy/ps/server_policy.hpp"

namespace stratagem {

/// One server's shard of the parameters with everything that its policy keeps beside it: room for
/// one gradient per worker, the momentum, and, for asynchronous policies, the parameters that each
/// worker was handed last. Knows no messages. CPU tensors; all results are the same for every
/// number of threads.
class ParameterStore {
 public:
  /// `parameters`: 1-D, fp32 or fp64, updated in place. A gradient is scaled by `scale` before use.
  ParameterStore(ServerPolicy const& policy, OptimizerConfig const& optimizer, int workers,
                 double scale, at::Tensor parameters);

  at::Tensor const& parameters() const { return parameters_; }
  /// Where the gradient of a worker lands, as large as parameters().
  at::Tensor const& slot(int worker) const { return slots_[static_cast<std::size_t>(worker)]; }

  /// One update of `range` from the sum of all slots, in worker order. Overwrites slot 0.
  void apply_sum(FlatRange range, double lr);

  /// One update from one slot, which it overwrites.
  void apply(int worker, double weight, double lr);
  /// Makes handed(worker) what the worker computes with next.
  void hand_out(int worker, double lr);
  at::Tensor const& handed(int worker) const { return handed_[static_cast<std::size_t>(worker)]; }
  /// Root mean square, over every 64th element, of what changed since hand_out(worker).
  double gap(int worker) const;

  /// Sum over workers where each has its own; undefined without momentum.
  at::Tensor momentum() const;
  /// One, one per worker, or none.
  std::vector<at::Tensor> momenta() const;

 private:
  Sgd& optimizer_of(int worker);
  void sum_of_momenta(at::Tensor const& out) const;

  ServerPolicy policy_;
  double momentum_factor_;
  double scale_;
  at::Tensor parameters_;
  std::vector<Sgd> optimizers_;  ///< one, or one per worker
  std::vector<at::Tensor> slots_, handed_;
};

}  // namespace stratagem
