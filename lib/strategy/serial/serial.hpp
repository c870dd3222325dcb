#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/block_tape.hpp"
#include "strategy/serial/serial_plan.hpp"
#include "strategy/serial/worker_sums.hpp"
#include "strategy/shared/replica.hpp"
#include "strategy/shared/step_graph.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/shared/update.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// One process. With emulate_ranks N it makes, one after the other, the passes that N synchronous
/// ranks would make at the same time, and adds their gradients in rank order: what every
/// synchronous strategy is compared with, bit for bit.
class Serial final : public Strategy {
 public:
  Serial(SerialConfig const& config, StrategyParts const& parts);

  StepResult step(Batch const& batch, StepOptions const& options) override;
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override {
    return infer(replica_, statistics, tape_, images, parts_.evaluation());
  }
  State state() override;
  void state_replaced() override { replica_.refresh(all()); }

 private:
  /// Like the parameters.
  struct Gradients {
    at::Tensor flat;
    std::vector<std::vector<at::Tensor>> views;  ///< by block
  };

  Gradients make_gradients() const;
  FlatRange all() const { return {0, replica_.layout().size()}; }
  /// All passes: what a graph can keep.
  void submit(Batch const& batch);
  /// Every worker's own gradients first, then over workers: as DDP adds.
  void accumulate_unsharded(std::vector<Batch> const& workers);
  /// Over workers first, then over micro-batches: as FSDP adds that reduces each micro-batch.
  void accumulate_sharded(std::vector<Batch> const& workers);
  void pass(int worker, Batch const& micro, Gradients const& gradients, GradWrite write);
  at::Tensor forward(int worker, Batch const& micro);
  void update_all(double lr, std::optional<at::Tensor> const& refusal = {});
  /// Of a GPU, which did not update anything: makes the passes again until one is not finite.
  [[noreturn]] void find_bad_loss(Batch const& batch);
  [[noreturn]] void refuse_loss(std::int64_t step, int worker, int block) const;

  SerialConfig config_;
  StrategyParts parts_;
  Replica replica_;
  std::vector<Buffers> buffers_;  ///< by worker
  Gradients sum_;                 ///< of all so far
  Gradients own_;                 ///< of the present worker, where there are several
  Gradients micro_;               ///< of the present micro-batch so far, where that is needed
  std::unique_ptr<WorkerSums> sums_;
  StepStatus status_;
  BlockTape tape_;
  Update update_;
  StepGraph graph_;
};

}  // namespace stratagem
