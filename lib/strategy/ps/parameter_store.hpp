#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "optim/optimizer.hpp"
#include "strategy/ps/gradient_correction.hpp"
#include "strategy/ps/policy/server_policy.hpp"

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
  /// The same memory, of a range of the shard.
  StoreMemory part(FlatRange range) const;
};

/// Of SGD, over which workers may look ahead; 0 for other rules.
double momentum_of(OptimizerConfig const& optimizer);

/// True where `outgoing` is `parameters`.
bool sends_parameters(ServerPolicy const& policy, OptimizerConfig const& optimizer);

/// What one push counts: its gradient is multiplied with `factor`, which undoes the loss scale,
/// takes means and clips, and then with the `weight` that the policy gives it.
struct PushScale {
  double lr = 0;
  double weight = 1;
  double factor = 1;
};

/// What a store keeps for each parameter: the sum of `terms`.
struct StoreState {
  std::string kind;
  std::vector<at::Tensor> terms;  ///< one, or one per worker
};

/// All but `parameters` newly allocated.
StoreMemory make_store_memory(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                              int workers, at::Tensor parameters);

/// One server's shard of the parameters, or a part of it that has versions of its own, with
/// everything that its policy keeps beside it: room for
/// one gradient per worker, the momentum, and, for asynchronous policies, the parameters that each
/// worker was handed last. Knows no messages. CPU tensors; all results are the same for every
/// number of threads.
class ParameterStore {
 public:
  /// `memory`: fp32 or fp64. `vectors`: which of its elements belong to parameters of one
  /// dimension.
  ParameterStore(ServerPolicy const& policy, OptimizerConfig const& optimizer, StoreMemory memory,
                 std::vector<FlatRange> const& vectors = {});
  /// With memory of its own, beside `parameters`, which are updated in place.
  ParameterStore(ServerPolicy const& policy, OptimizerConfig const& optimizer, int workers,
                 at::Tensor parameters, std::vector<FlatRange> const& vectors = {})
      : ParameterStore(policy, optimizer,
                       make_store_memory(policy, optimizer, workers, std::move(parameters)),
                       vectors) {}

  at::Tensor const& parameters() const { return memory_.parameters; }
  /// Where the gradient of a worker lands.
  at::Tensor const& slot(int worker) const { return memory_.slot(worker); }
  /// False once a gradient that was applied was not finite.
  bool finite() const {
    return std::ranges::all_of(optimizers_, [](auto const& each) { return each->finite(); });
  }

  // Synchronous policies.

  /// Makes `range` of sum() that of all slots, in worker order.
  void add_up(FlatRange range);
  /// Which is slot 0.
  at::Tensor const& sum() const { return memory_.slots.front(); }
  /// Afterwards, once per update.
  void begin_update() { optimizers_.front()->begin_update(); }
  /// And then: updates `range` from `factor` times the sum.
  void apply_sum(FlatRange range, double lr, double factor);
  /// Afterwards: makes `range` of outgoing() what workers compute with next.
  void publish(FlatRange range, double lr);
  at::Tensor const& outgoing() const { return memory_.outgoing.front(); }

  // Asynchronous policies.

  // Workers that look ahead get p - lr momentum (v_1 + ... + v_W). Within a round it is this point
  // that is kept, and parameters() with it: a push moves it by -lr (d + momentum v_i), which is
  // Nesterov's rule with the worker's own momentum and costs no more than a push without a
  // look-ahead (DANA-Slim of Hakimi et al., arXiv 1907.11612). Weight decay is that of this point.

  /// Makes handed() the parameters for every worker.
  void begin_round();
  /// Makes parameters() those that are looked ahead from.
  void end_round() { look_from(0); }
  /// One update from one slot, which it overwrites. The pushes of one share count as one.
  void apply(int worker, PushScale const& scale);
  /// For policies that collect: adds a slot, which it overwrites, to an update to come.
  void collect(int worker, PushScale const& scale);
  /// One update from the mean of what was collected (its sum for `reduction: sum`), with the
  /// learning rate of the last of it.
  void apply_collected();
  /// One push: a part of an update, which is made when the push `completes` it. One that makes an
  /// update alone is applied as it is.
  void take(int worker, PushScale const& scale, bool completes);
  /// Makes handed(worker) what the worker computes with next; where `lr` is 0, not ahead.
  void hand_out(int worker, double lr);
  at::Tensor const& handed(int worker) const { return memory_.outgoing_to(worker); }
  /// Root mean square, over every 64th element, of what changed since hand_out(worker).
  double gap(int worker) const;

  /// Of SGD: the sum over workers where each has its own; undefined without momentum.
  at::Tensor momentum() const;
  /// What optimizers keep, and what the policy's corrections do.
  std::vector<StoreState> kept() const;
  /// What else the next update depends on.
  std::map<std::string, double*> counters();

 private:
  bool looks_ahead() const;
  Optimizer& optimizer_of(int worker);
  /// Corrects the gradient of a worker, of which the slot has 1 / `factor`, for what changed since
  /// hand_out(worker).
  void correct(int worker, double factor);
  void update(Optimizer& optimizer, at::Tensor const& gradient, double lr, double scale);
  void sum_of_momenta(at::Tensor const& out) const;
  /// Moves parameters() from how far ahead they are to how far this learning rate leads.
  void look_from(double lr);

  ServerPolicy policy_;
  double momentum_factor_;
  bool mean_;  ///< over the gradients of an update
  StoreMemory memory_;
  GradientCorrection correction_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  ///< one, or one per worker
  double ahead_lr_ = 0;   ///< parameters() are ahead by as much as this rate leads
  at::Tensor collected_;  ///< sum of gradients
  std::int64_t collected_count_ = 0;
  double collected_lr_ = 0;  ///< of the last of them
};

}  // namespace stratagem
