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
  NamedTensors gather_parameters() override { return replica_.named(replica_.flat()); }
  NamedTensors gather_momentum() override;
  NamedTensors gather_buffers() override { return named(parts_.model, average(buffers_)); }
  void load(std::map<std::string, at::Tensor> const& tensors) override;

 private:
  [[noreturn]] void refuse_loss(std::int64_t step, int worker, int block) const;

  SerialConfig config_;
  StrategyParts parts_;
  Replica replica_;
  std::vector<Buffers> buffers_;  ///< by worker
  Buffers evaluation_buffers_;
  at::Tensor sum_, own_;  ///< gradients of all workers so far, and of the present one
  std::vector<std::vector<at::Tensor>> sum_views_, own_views_;  ///< by block
  BlockTape tape_;
  Update update_;
};

}  // namespace stratagem
