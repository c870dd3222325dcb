#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/client_config.hpp"
#include "keys/key.hpp"

namespace stratagem {

/// How a server gets the sum of changes.
enum class SecureSum {
  none,      ///< it sees each of them
  pairwise,  ///< masks of pairs of clients cancel in the sum (Bonawitz et al., CCS 2017)
};

/// Federated averaging: of many clients, each with samples of its own, a few train for some steps
/// in every round, and a server takes the weighted mean of their changes (McMahan et al. 2017,
/// arXiv 1602.05629), with momentum (FedAvgM, Hsu et al. 2019, arXiv 1909.06335). Ranks play the
/// clients that are drawn; there is no rank that serves.
struct FedAvgConfig {
  static constexpr std::string_view name = "fedavg";
  static constexpr std::string_view description =
      "clients with data of their own; in each round the changes of a few are averaged";
  /// Of its own state for each parameter, as checkpoints name it.
  static constexpr char const* momentum_sum = "server_momentum";

  int clients = 100;
  int per_round = 0;    ///< clients drawn for a round, equally many per rank; 0: one for each rank
  int local_steps = 4;  ///< of each of them in a round
  Split split = Split::iid;
  double split_alpha = 1;  ///< of Split::dirichlet
  double server_lr = 1;
  double server_momentum = 0;
  double largest_change = 1;  ///< of a parameter, by one client; what is beyond it is clipped
  SecureSum secure = SecureSum::none;
  /// Of pairwise: clients that share masks and must answer; 0: two thirds of them.
  int threshold = 0;
  int neighbours = 0;     ///< of pairwise: clients that each shares masks with; 0: all others
  int lost = 0;           ///< clients of each round that do not answer, for experiments
  int micro_batches = 1;  ///< forward and backward passes of a client per step

  /// Whether one rank does what the strategy is for: it may play several workers.
  bool works_on_one_rank() const { return per_round > 1; }
};

/// Of section `strategy`, bound to `config`.
Keys keys_of(FedAvgConfig& config);
/// What `plan --compare` shows of it, by name; with what `given` says.
std::vector<std::pair<std::string, FedAvgConfig>> alternatives(FedAvgConfig const& given);

}  // namespace stratagem
