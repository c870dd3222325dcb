#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "strategy/pass/passes.hpp"
#include "strategy/pass/replica_gradients.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/shared/update.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// The workers that a rank plays, in turn. Each has gradients and running statistics of its own
/// and, where workers may be apart, parameters and optimizer state.
///
/// Between two rounds the first one's place shows the mean of all workers, to be evaluated and
/// saved. The training continues from each worker's own parameters: its numbers do not depend on
/// where rounds end.
class VirtualWorkers {
 public:
  struct Counts {
    int all = 1;      ///< of all ranks
    int of_rank = 1;  ///< rank r plays those from r of_rank on
    int micro_batches = 1;
    bool apart = false;     ///< they step on their own, else together: then they share a learner
    std::int64_t tail = 0;  ///< elements that lie behind a worker's gradients
  };
  /// What a worker trains.
  struct Learner {
    Replica replica;
    Update update;
  };

  VirtualWorkers(Counts const& counts, StrategyParts const& parts);

  /// Of a worker of this rank, among all.
  int number_of(std::size_t worker) const {
    return parts_.world.all().rank() * counts_.of_rank + static_cast<int>(worker);
  }
  Learner& learner_of(std::size_t worker) { return learners_[counts_.apart ? worker : 0]; }
  std::span<Learner> learners() { return learners_; }
  FlatRange all() const { return {0, learners_.front().replica.layout().size()}; }
  /// By worker of this rank, laid out as the parameters; and with what lies behind them.
  std::span<at::Tensor const> gradients() const { return gradients_; }
  std::span<at::Tensor const> with_tails() const { return with_tails_; }
  /// Why this rank cannot continue, which others do not know yet.
  std::optional<Error> const& failure() const { return failure_; }

  /// A round begins: each worker is in its own place again.
  void leave_mean();
  /// A round ends: they are whole, and the mean is shown. Ends the run where a rank has failed.
  /// Collective.
  void show_mean();

  /// One step's passes of each worker on its part of `batch`, each followed by `after` with its
  /// number on this rank. What they found; the mean loss. `hashes`: of what ranks compare.
  StepResult run_passes(Batch const& batch, StepOptions const& options, ReplicaHashes hashes,
                        std::function<void(std::size_t)> const& after);
  void apply(Learner& learner, at::Tensor const& gradients, double lr);
  /// A worker's update with its own gradients.
  void step_alone(std::size_t worker, Batch const& batch, double lr);

  /// Sums `tensors`, one per worker, over all workers into the first, while ranks exchange what
  /// they must agree on. Ends the run where one of them cannot continue. Collective.
  StepResult exchange(std::span<at::Tensor const> tensors, Batch const& batch);
  /// The same, which returns when ranks have agreed: begin_sum_over_workers() says when the sum is
  /// there.
  struct Begun {
    StepResult result;
    Work sum;
  };
  Begun begin_exchange(std::span<at::Tensor const> tensors, Batch const& batch);
  /// All continue from the first learner's parameters.
  void follow_first();

  /// As the first learner has it.
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) {
    return passes_.predict(stores_.front(), statistics, images);
  }
  /// Between two rounds: root mean square of the workers' distances from the mean, divided by the
  /// mean's length. Collective.
  double spread() const;

  /// Optimizer state that all have in common.
  OptimizerState in_common() const;
  /// What other ranks hold, too: the parameters, and `in_common`.
  NamedTensors replicas(OptimizerState const& in_common) const;
  State state(OptimizerState const& in_common);
  void state_replaced();

 private:
  /// All passes of a worker's share; adds loss and correct samples to `own`.
  void pass(std::size_t worker, Batch const& share, StepResult& own);
  StatusTerms terms() const;
  /// Replaces the parameters of the first learner by the mean of all workers'. Collective.
  void average_parameters(Batch const& batch);
  /// What worker `number` has of its own, of which this rank may hold nothing.
  std::vector<ParameterState> own_state(int number) const;

  Counts counts_;
  StrategyParts parts_;
  std::vector<Learner> learners_;
  std::vector<Buffers> buffers_;  ///< running statistics, by worker of this rank
  std::vector<at::Tensor> with_tails_;
  /// Between rounds, where workers are apart, the first one holds the first worker's parameters,
  /// whose own place shows the mean.
  std::vector<at::Tensor> gradients_;
  std::vector<ReplicaGradients> stores_;  ///< by worker: gradients_, and its learner's parameters
  StepStatus status_;
  Passes passes_;
  std::int64_t last_step_ = 0;
  bool differ_ = false;           ///< workers have made own steps since all continued alike
  std::optional<Error> failure_;  ///< until all know
};

}  // namespace stratagem
