#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "model/block_tape.hpp"
#include "strategy/local/local_plan.hpp"
#include "strategy/local/outer_step.hpp"
#include "strategy/shared/control.hpp"
#include "strategy/shared/replica.hpp"
#include "strategy/shared/update.hpp"
#include "strategy/state/replicas.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Local SGD: every worker makes its own steps from its own part of each global batch; every
/// inner_steps steps all continue from the mean of their parameters. Of its own a worker keeps its
/// momentum, as in Lin et al. (arXiv 1808.07217) and PyTorch's PostLocalSGDOptimizer, and its
/// running statistics, as in every strategy. With an outer step all go on from where that leads, as
/// in DiLoCo (arXiv 2311.08105). Before begin_step, and always with inner_steps 1,
/// gradients are averaged in place of parameters: these steps are DDP's, bit for bit.
///
/// Between two averagings ranks hear nothing of each other: requests, and losses and gradients that
/// are not finite, become known at the next one. Rounds may end anywhere. Between them this rank
/// shows the mean of all workers, to be evaluated and saved, and the training continues from each
/// worker's own parameters: its numbers do not depend on where rounds end.
class LocalSgd final : public Strategy {
 public:
  LocalSgd(LocalPlan const& plan, StrategyParts const& parts);

  void begin_round(Round const& round) override;
  StepResult step(Batch const& batch, StepOptions const& options) override;
  void drain() override;
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override {
    return infer(learners_.front().replica, statistics, tape_, images);
  }
  State state() override;
  void state_replaced() override;

 private:
  /// What a worker trains. Workers that never differ share one.
  struct Learner {
    Replica replica;
    Update update;
  };

  Learner& learner_of(std::size_t worker) { return learners_[plan_.apart() ? worker : 0]; }
  /// Of a worker of this rank, among all.
  int number_of(std::size_t worker) const {
    return parts_.communicator.rank() * plan_.workers_of_rank() + static_cast<int>(worker);
  }
  FlatRange all() const { return {0, learners_.front().replica.layout().size()}; }
  /// What other ranks hold, too.
  NamedTensors replicas() const;
  /// What worker `number` has of its own, of which this rank may hold nothing.
  std::vector<ParameterState> own_state(int number) const;
  Error bad_loss(std::int64_t step, std::size_t worker) const;

  /// Forward and backward; adds loss and correct samples to `own`.
  void pass(std::size_t worker, Batch const& share, StepResult& own);
  void apply(Learner& learner, at::Tensor const& gradients, double lr);
  void step_alone(std::size_t worker, Batch const& batch, double lr);
  /// The update that all workers make; `gradients_` are each one's own.
  StepResult step_together(Batch const& batch, double lr);
  /// Replaces the parameters of the first learner by the mean of all workers'.
  StepResult average_parameters(Batch const& batch);
  /// Sums `tensors` over all workers into the first, while ranks exchange what they must agree on.
  /// Ends the run where one of them cannot continue.
  StepResult exchange(std::span<at::Tensor const> tensors, Batch const& batch);

  LocalPlan plan_;
  StrategyParts parts_;
  std::vector<Learner> learners_;
  std::optional<OuterStep> outer_;
  std::vector<Buffers> buffers_;  ///< running statistics, by worker of this rank
  /// By worker of this rank, laid out as the parameters. Between rounds, where workers may differ,
  /// the first one holds the first worker's parameters, whose own place shows the mean.
  std::vector<at::Tensor> gradients_;
  std::vector<std::vector<std::vector<at::Tensor>>> gradient_views_;  ///< by worker, by block
  StepStatus control_;
  ReplicaHashes hashes_;  ///< of this step, where it compares them
  BlockTape tape_;
  std::int64_t last_step_ = 0;
  bool differ_ = false;           ///< workers have made own steps since the last averaging
  std::optional<Error> failure_;  ///< why this rank cannot continue, until all know
};

}  // namespace stratagem
