#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keys/key.hpp"

namespace stratagem {

/// Who hears whom when workers mix; see Neighbours.
enum class Graph { ring, exponential, complete, star };

/// Workers that step on their own and mix their parameters with their neighbours' alone: D-PSGD
/// (Lian et al. 2017, arXiv 1705.09056) and, with push-sum, SGP (Assran et al. 2019, arXiv
/// 1811.10792).
struct GossipConfig {
  static constexpr std::string_view name = "gossip";
  static constexpr std::string_view description =
      "workers step on their own and mix parameters with their neighbours' (decentralised)";
  /// Of each worker, as checkpoints name it.
  static constexpr char const* push_sum_weight = "push_sum_weight";

  int workers = 0;  ///< of which each rank plays equally many; 0: one on each rank
  Graph graph = Graph::exponential;
  bool push_sum = false;  ///< parameters are divided by a weight that is mixed as they are
  int mix_every = 1;      ///< steps
  int micro_batches = 1;  ///< forward and backward passes of a worker per step

  /// Whether one rank does what the strategy is for: it may play several workers.
  bool works_on_one_rank() const { return workers > 1; }
};

/// Of section `strategy`, bound to `config`.
Keys keys_of(GossipConfig& config);
/// What `plan --compare` shows of it, by name; with what `given` says.
std::vector<std::pair<std::string, GossipConfig>> alternatives(GossipConfig const& given);

/// As the configuration names it.
std::string_view name_of(Graph graph);

}  // namespace stratagem
