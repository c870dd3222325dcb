#pragma once

#include <memory>
#include <optional>

#include "strategy/pass/replica_gradients.hpp"
#include "strategy/serial/serial_config.hpp"
#include "strategy/serial/worker_sums.hpp"
#include "strategy/shared/trained_model.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// The one replica of a process that plays all workers, and the sum of their gradients, which it
/// adds up itself.
class EmulatedModel final : public TrainedModel {
 public:
  EmulatedModel(SerialConfig const& config, StrategyParts const& parts);

  Replica const& replica() const { return replica_; }
  /// Of all workers so far; the first one's own.
  ReplicaGradients& sum() { return sum_; }
  /// Of the present group so far, where there are several.
  ReplicaGradients& group() { return *group_; }
  /// Of the present worker, where there are several.
  ReplicaGradients& own() { return *own_; }
  /// Of the present micro-batch so far, where that is summed apart.
  ReplicaGradients& micro() { return *micro_; }
  /// How workers' gradients become their sum.
  WorkerSums& sums() { return *sums_; }

  StepStatus& status() override { return status_; }
  Update& update() override { return update_; }
  void await_status() override {}
  void await_sums() override {}
  void apply(double lr, std::optional<at::Tensor> const& refusal) override;
  double gradient_norm() override { return stratagem::gradient_norm({&sum_.flat(), 1}); }
  [[noreturn]] void refuse_gradient(std::int64_t step) const override;

  /// Without running statistics.
  State state();
  void state_replaced() { replica_.refresh(all()); }

 private:
  FlatRange all() const { return {0, replica_.layout().size()}; }

  Replica replica_;
  ReplicaGradients sum_;
  std::optional<ReplicaGradients> group_, own_, micro_;
  std::unique_ptr<WorkerSums> sums_;
  StepStatus status_;
  Update update_;
};

}  // namespace stratagem
