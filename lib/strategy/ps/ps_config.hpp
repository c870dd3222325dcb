#pragma once

#include <optional>
#include <string_view>

#include "params/server_placement.hpp"
#include "strategy/ps/server_policy.hpp"

namespace stratagem {

/// Named policies of a parameter server; each is a choice of the parts below it.
enum class PsMode {
  sync,     ///< one update from the gradients of all workers: what DDP computes
  async,    ///< one update from each gradient, when it comes
  ssp,      ///< async, but nobody runs far ahead of the slowest (Ho et al., NIPS 2013)
  lag_cap,  ///< async without gradients that are too old (Maranjyan et al., "Ringmaster", 2025)
  dana,     ///< async with look-ahead momentum (Hakimi et al., arXiv 1907.11612)
  dc,       ///< async with delay-compensated gradients (Zheng et al., ICML 2017)
};

/// Servers hold the parameters, workers compute gradients.
struct PsConfig {
  static constexpr std::string_view name = "ps";
  int servers = 1;
  ServerPlacement server_ranks = ServerPlacement::last;
  double chunk_mb = 4;  ///< pieces in which parameters and gradients travel [MiB]
  PsMode mode = PsMode::sync;
  // Parts of the policy; those not given are the mode's.
  std::optional<int> staleness;     ///< steps by which a worker may be ahead of the slowest
  std::optional<int> lag_cap;       ///< older gradients are dropped; 0 drops none
  std::optional<double> dc_lambda;  ///< strength of the delay compensation; 0 is none
  std::optional<ServerPolicy::Momentum> momentum;
  std::optional<ServerPolicy::Weight> weight;
  int slow_worker = -1;  ///< the one that is made slower, for experiments; -1 is none
  double slow = 1;       ///< by this factor
};

/// The policy that mode and parts make. Error(usage) naming parts that contradict the mode.
ServerPolicy policy_of(PsConfig const& config, int workers);

}  // namespace stratagem
