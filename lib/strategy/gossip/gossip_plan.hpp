#pragma once

#include "strategy/gossip/neighbours.hpp"
#include "strategy/plan.hpp"

namespace stratagem {

/// What decentralised training has decided before it runs.
struct GossipPlan {
  GossipConfig config;
  Neighbours neighbours;
  int ranks = 1;
  std::int64_t message_bytes = 0;  ///< a worker's parameters with what is told beside them
  int inbox = 0;                   ///< messages that a rank has room for

  int workers() const { return neighbours.workers(); }
  /// Rank r plays those from r workers_of_rank() on.
  int workers_of_rank() const { return workers() / ranks; }
  int rank_of(int worker) const { return worker / workers_of_rank(); }
  /// Of step s = 0, 1, ... One worker alone learns of its own failure in every step.
  bool mixes_after(std::int64_t step) const {
    return workers() == 1 || (step + 1) % config.mix_every == 0;
  }
  std::int64_t mixing_of(std::int64_t step) const { return step / config.mix_every; }

  /// Whether some worker of the rank hears the sender: then one message comes for all of them.
  bool heard_on(int rank, int sender, std::int64_t mixing) const;
  /// Messages from one rank to another in a mixing.
  int messages(int from, int to, std::int64_t mixing) const;
  /// To all others, and from all others.
  int sent_by(int rank, std::int64_t mixing) const;
  int received_by(int rank, std::int64_t mixing) const;
};

/// Error(usage) where workers cannot be dealt to the ranks evenly, where the matrix needs push-sum,
/// and naming what goes by the gradients of all workers.
StrategyPlan plan_of(GossipConfig const& config, PlanInput const& input);

}  // namespace stratagem
