#pragma once

#include "comm/work/work.hpp"
#include "model/block_tape.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"
#include "strategy/fsdp/gradient_units.hpp"
#include "strategy/fsdp/parameter_units.hpp"
#include "strategy/shared/step_graph.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/shared/update.hpp"
#include "strategy/state/buffers.hpp"
#include "strategy/state/replicas.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Fully sharded data parallelism: every rank owns one shard of each unit of the model, with its
/// gradients and its optimizer's state. Units are gathered to run, in both passes, and given up
/// again; their gradients are summed into the shards (Rajbhandari et al., "ZeRO", SC 2020; Zhao et
/// al., "PyTorch FSDP", VLDB 2023). What is not sharded under ZeRO-1 and 2 is a unit that is never
/// given up.
class Fsdp final : public Strategy {
 public:
  Fsdp(FsdpPlan plan, StrategyParts const& parts);

  StepResult step(Batch const& batch, StepOptions const& options) override;
  void drain() override { parameters_.wait(); }
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override;
  State state() override;
  void state_replaced() override { parameters_.reshard_all(); }

 private:
  /// Of units that are not given up: what was gathered of them.
  NamedTensors replicas() const;
  void hash_replicas(bool wanted);
  /// All passes, and their sums over ranks: what a graph can keep. It begins and ends with all
  /// units given up.
  void submit(Batch const& batch);
  at::Tensor forward(Batch const& micro);
  void backward(at::Tensor gradient, int micro_batch, std::int64_t step);
  void send_control();
  /// Updates the shards.
  void update(double lr, std::optional<at::Tensor> const& refusal = {});
  void update_unit(int unit, double lr, std::optional<at::Tensor> const& refusal);
  /// False when the step is skipped.
  bool update_if_admitted(double lr);
  /// What this rank has of the gradients, by name.
  NamedTensors own_gradients() const;
  /// What the step returns; ends the run when a loss was not finite, or ranks differ.
  StepResult agreed(Batch const& batch);

  /// Waits for the unit and starts to gather those that follow it in the pass.
  void unshard_for_forward(int unit);
  void unshard_for_backward(int unit);
  void gather_ahead(int unit);

  StrategyParts parts_;
  ParameterLayout layout_;
  FsdpPlan plan_;
  Buffers buffers_;
  ParameterUnits parameters_;
  GradientUnits gradients_;
  ReplicaHashes hashes_;  ///< of this step, where it compares them
  StepStatus status_;
  Work status_sum_;
  BlockTape tape_;
  Update update_;
  StepGraph graph_;
};

}  // namespace stratagem
