#pragma once

#include "model/block_tape.hpp"
#include "strategy/factory.hpp"
#include "strategy/replica.hpp"
#include "strategy/update.hpp"

namespace stratagem {

/// One process. With emulate_ranks N it makes, one after the other, the passes that N synchronous
/// ranks would make at the same time, and adds their gradients in rank order: what every
/// synchronous strategy is compared with, bit for bit.
class Serial final : public Strategy {
 public:
  Serial(SerialConfig const& config, StrategyParts const& parts);

  StepResult step(Batch const& batch, StepOptions const& options) override;
  void drain() override {}
  void prepare_evaluation() override { evaluation_buffers_ = average(buffers_); }
  at::Tensor predict(at::Tensor const& images) override;
  NamedTensors gather_parameters(Wanted const& wanted) override;
  NamedTensors gather_momentum(Wanted const& wanted) override;
  NamedTensors gather_buffers() override { return named(parts_.model, average(buffers_)); }
  std::map<int, NamedTensors> own_buffers() override;
  std::map<std::string, double> counters() const override { return update_.counters(); }
  void load(std::map<std::string, at::Tensor> const& tensors) override;
  void load_momentum(std::map<std::string, at::Tensor> const& tensors) override;
  void load_buffers(int worker, std::map<std::string, at::Tensor> const& tensors) override;
  void load_counters(std::map<std::string, double> const& counters) override {
    update_.load(counters);
  }

 private:
  /// Like the parameters.
  struct Gradients {
    at::Tensor flat;
    std::vector<std::vector<at::Tensor>> views;  ///< by block
  };

  Gradients make_gradients() const;
  /// Every worker's own gradients first, then over workers: as DDP adds.
  void accumulate_unsharded(std::vector<Batch> const& workers, StepResult& result);
  /// Over workers first, then over micro-batches: as FSDP adds that reduces each micro-batch.
  void accumulate_sharded(std::vector<Batch> const& workers, StepResult& result);
  /// Forward and backward; adds loss and correct samples to `result`.
  void pass(int worker, Batch const& micro, Gradients const& gradients, Landing landing,
            StepResult& result);
  [[noreturn]] void refuse_loss(std::int64_t step, int worker, int block) const;

  SerialConfig config_;
  StrategyParts parts_;
  Replica replica_;
  std::vector<Buffers> buffers_;  ///< by worker
  Buffers evaluation_buffers_;
  Gradients sum_;    ///< of all so far
  Gradients own_;    ///< of the present worker, where there are several
  Gradients micro_;  ///< of the present micro-batch so far, where that is needed
  BlockTape tape_;
  Update update_;
};

}  // namespace stratagem
