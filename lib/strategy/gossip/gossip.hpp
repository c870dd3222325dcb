#pragma once

#include <string>

#include "strategy/gossip/mixer.hpp"
#include "strategy/shared/virtual_workers.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Decentralised training: every worker steps on its own part of each global batch, then mixes its
/// parameters with its neighbours' (D-PSGD, Lian et al. 2017, arXiv 1705.09056). With push-sum
/// (SGP, Assran et al. 2019, arXiv 1811.10792) it mixes x and a weight w, computes with x / w, and
/// updates x. Optimizer state, weight decay of x, and running statistics are its own. Between two
/// steps a worker's parameters are x / w.
///
/// Ranks exchange nothing with any but their neighbours: Tidings carry requests, and losses and
/// gradients that are not finite. All ranks meet where a round ends, see VirtualWorkers.
class Gossip final : public Strategy {
 public:
  Gossip(GossipPlan const& plan, StrategyParts const& parts);

  void begin_round(Round const& round) override;
  StepResult step(Batch const& batch, StepOptions const& options) override;
  void drain() override { workers_.show_mean(); }
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override {
    return workers_.predict(images, statistics);
  }
  std::string report() override;
  State state() override;
  void state_replaced() override { workers_.state_replaced(); }

 private:
  /// Passes and updates of x.
  StepResult learn(Batch const& batch, StepOptions const& options);
  /// x <- x / w
  void divide_by_weights();

  GossipPlan plan_;
  StrategyParts parts_;
  VirtualWorkers workers_;
  Mixer mixer_;
  std::vector<at::Tensor> x_;  ///< of each worker of this rank
};

}  // namespace stratagem
