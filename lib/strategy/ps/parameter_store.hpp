#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "optim/sgd.hpp"
#include "strategy/ps/server_policy.hpp"

namespace stratagem {

/// What workers write and read of a server's store: 1-D tensors of the shard's size.
struct StoreMemory {
  at::Tensor parameters;
  std::vector<at::Tensor> slots;  ///< by worker: where its gradient lands
  /// By worker: what it computes with. One for all in synchronous policies, where it is
  /// `parameters` itself unless workers look ahead.
  std::vector<at::Tensor> outgoing;

  at::Tensor const& slot(int worker) const { return slots[static_cast<std::size_t>(worker)]; }
  at::Tensor const& outgoing_to(int worker) const {
    return outgoing.size() == 1 ? outgoing.front() : outgoing[static_cast<std::size_t>(worker)];
  }
};

/// True where `outgoing` is `parameters`.
bool sends_parameters(ServerPolicy const& policy, OptimizerConfig const& optimizer);

/// All but `parameters` newly allocated.
StoreMemory make_store_memory(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                              int workers, at::Tensor parameters);

/// One server's shard of the parameters with everything that its policy keeps beside it: room for
/// one gradient per worker, the momentum, and, for asynchronous policies, the parameters that each
/// worker was handed last. Knows no messages. CPU tensors; all results are the same for every
/// number of threads.
class ParameterStore {
 public:
  /// `memory`: fp32 or fp64. A gradient is scaled by `scale` before use.
  ParameterStore(ServerPolicy const& policy, OptimizerConfig const& optimizer, double scale,
                 StoreMemory memory);
  /// With memory of its own, beside `parameters`, which are updated in place.
  ParameterStore(ServerPolicy const& policy, OptimizerConfig const& optimizer, int workers,
                 double scale, at::Tensor parameters)
      : ParameterStore(policy, optimizer, scale,
                       make_store_memory(policy, optimizer, workers, std::move(parameters))) {}

  at::Tensor const& parameters() const { return memory_.parameters; }
  /// Where the gradient of a worker lands.
  at::Tensor const& slot(int worker) const { return memory_.slot(worker); }
  /// False once a gradient that was applied was not finite.
  bool finite() const {
    return std::ranges::all_of(optimizers_, [](Sgd const& each) { return each.finite(); });
  }

  // Synchronous policies.

  /// One update of `range` from the sum of all slots, in worker order. Overwrites slot 0.
  void apply_sum(FlatRange range, double lr);
  /// Afterwards: makes `range` of outgoing() what workers compute with next.
  void publish(FlatRange range, double lr);
  at::Tensor const& outgoing() const { return memory_.outgoing.front(); }

  // Asynchronous policies.

  /// One update from one slot, which it overwrites.
  void apply(int worker, double weight, double lr);
  /// For policies that collect: adds a slot, which it overwrites, to an update to come.
  void collect(int worker, double weight, double lr);
  /// One update from the mean of what was collected (its sum for `reduction: sum`), with the
  /// learning rate of the last of it.
  void apply_collected();
  /// One push, as the policy treats it: an update of its own, or a part of one that is made when
  /// the push `completes` it.
  void take(int worker, double weight, double lr, bool completes);
  /// Makes handed(worker) what the worker computes with next.
  void hand_out(int worker, double lr);
  at::Tensor const& handed(int worker) const { return memory_.outgoing_to(worker); }
  /// Root mean square, over every 64th element, of what changed since hand_out(worker).
  double gap(int worker) const;
  /// The same in mean updates: a running mean, of which each update is 1 %. 0 before the first, and
  /// for policies that do not weigh by it.
  double gap_in_updates(int worker) const;

  /// Sum over workers where each has its own; undefined without momentum.
  at::Tensor momentum() const;
  /// One, one per worker, or none.
  std::vector<at::Tensor> momenta() const;

 private:
  Sgd& optimizer_of(int worker);
  /// Corrects the gradient of a worker for what changed since hand_out(worker).
  void correct(int worker);
  void update(Sgd& optimizer, at::Tensor const& gradient, double lr, double scale);
  void sum_of_momenta(at::Tensor const& out) const;

  ServerPolicy policy_;
  double momentum_factor_;
  bool mean_;  ///< over the gradients of an update
  double scale_;
  StoreMemory memory_;
  std::vector<Sgd> optimizers_;  ///< one, or one per worker
  at::Tensor collected_;         ///< sum of gradients
  std::int64_t collected_count_ = 0;
  double collected_lr_ = 0;  ///< of the last of them
  double mean_update_ = 0;   ///< root mean square of the parameters' change
};

}  // namespace stratagem
