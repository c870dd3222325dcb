#pragma once

#include <vector>

#include "comm/work/work.hpp"
#include "strategy/data_parallel/data_parallel.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"
#include "strategy/fsdp/gradient_units.hpp"
#include "strategy/fsdp/parameter_units.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Fully sharded data parallelism: every rank owns one shard of each unit of the model, with its
/// gradients and its optimizer's state. Units are gathered to run, in both passes, and given up
/// again; their gradients are summed into the shards (Rajbhandari et al., "ZeRO", SC 2020; Zhao et
/// al., "PyTorch FSDP", VLDB 2023). What is not sharded under ZeRO-1 and 2 is a unit that is never
/// given up. Where groups of ranks each hold the whole model (HSDP, hybrid sharding), the sums of
/// shards are summed over these. The status travels alone, behind the last forward pass.
class Sharded final : public DataParallel {
 public:
  /// `all`: the ranks of all groups.
  Sharded(FsdpPlan plan, StrategyParts const& parts, Communicator& all, ShardGroups const& groups);

  StepStatus& status() override { return status_; }
  Update& update() override { return update_; }

  void begin_step(std::int64_t step, bool kept) override;
  void begin_pass(int number) override { pass_ = number; }
  /// Waits for the unit of the block and starts to gather those that follow it in the pass.
  std::span<at::Tensor const> unshard(int block, Direction direction) override;
  void reshard(int block, Direction direction) override;
  void begin_backward() override;
  GradientTarget gradients(int block) override;
  void landed(int block) override;

  void await_status() override;
  void await_sums() override;
  /// Updates the shards.
  void apply(double lr, std::optional<at::Tensor> const& refusal) override;
  void end_step(bool kept) override;
  double gradient_norm() override { return stratagem::gradient_norm(gradients_.shards(), shards_); }
  [[noreturn]] void refuse_gradient(std::int64_t step) const override;

  /// Of units that are not given up: what was gathered of them.
  NamedTensors replicas() const override;
  void gather_replicas() override;
  State state() override;
  void state_replaced() override { parameters_.reshard_all(); }
  void drain() override { parameters_.wait(); }

 private:
  int unit_of(int block) const { return plan_.shards.unit_of(block); }
  bool is_first(int block) const { return plan_.unit(unit_of(block)).first_block == block; }
  bool is_last(int block) const { return plan_.unit(unit_of(block)).last_block == block; }
  bool is_last_pass() const { return pass_ + 1 == plan_.micro_batches; }
  void unshard_for_forward(int unit);
  void unshard_for_backward(int unit);
  void gather_ahead(int unit);
  void update_unit(int unit, double lr, std::optional<at::Tensor> const& refusal);
  /// What this rank has of the gradients, by name.
  NamedTensors own_gradients() const;

  StrategyParts parts_;
  Communicator& all_;
  Communicator& shards_;  ///< the ranks that hold the other shards
  ParameterLayout layout_;
  FsdpPlan plan_;
  ParameterUnits parameters_;
  GradientUnits gradients_;
  StepStatus status_;
  Work status_sum_;
  Update update_;
  std::int64_t step_ = 0;
  int pass_ = 0;  ///< micro-batch of the pass under way
};

}  // namespace stratagem
