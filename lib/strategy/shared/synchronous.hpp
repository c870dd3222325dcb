#pragma once

#include "strategy/shared/step_graph.hpp"
#include "strategy/shared/trained_model.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// The step of all strategies whose workers add up their gradients in every step: passes, sums,
/// agreement, update. When it updates follows from the update rule and from the device.
class Synchronous : public Strategy {
 public:
  StepResult step(Batch const& batch, StepOptions const& options) final;

 protected:
  /// `group`: the ranks whose gradients are added up, as `terms` counts them.
  Synchronous(StrategyParts const& parts, Communicator& group, StatusTerms const& terms);

  virtual TrainedModel& model() = 0;
  /// All passes of this rank, whose sums are under way then: what a graph can keep.
  virtual void submit(Batch const& batch) = 0;
  /// Ends a step in which the loss of some rank was not finite. Collective.
  [[noreturn]] virtual void refuse_loss(Batch const& batch) = 0;

  /// For passes of submit().
  Context context_of(Batch const& micro) const { return graph_.context_of(micro); }
  StrategyParts const& parts() const { return parts_; }
  Communicator& group() const { return group_; }

 private:
  void begin(Batch const& batch, StepOptions const& options);
  StepResult train(Batch const& batch, double lr);
  /// Passes, and `rest` behind them, as a graph where that is kept.
  void run(Batch const& batch, std::function<void()> const& rest);
  void apply(double lr, std::optional<at::Tensor> const& refusal = {});
  /// False when the step is skipped.
  bool apply_if_admitted(double lr);
  /// What the step returns; ends the run when a loss was not finite, or ranks differ.
  StepResult agreed(Batch const& batch);

  StrategyParts parts_;
  Communicator& group_;
  StatusTerms terms_;
  StepGraph graph_;
};

}  // namespace stratagem
