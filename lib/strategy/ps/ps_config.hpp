#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compress/compression.hpp"
#include "keys/key.hpp"
#include "strategy/ps/policy/server_policy.hpp"

namespace stratagem {

/// Named policies of a parameter server; each is a choice of the parts below it.
enum class PsMode {
  sync,          ///< one update from the gradients of all workers: what DDP computes
  async,         ///< one update from each gradient, when it comes
  ssp,           ///< async, but nobody runs far ahead of the slowest (Ho et al., NIPS 2013)
  modified,      ///< ssp, weighted by age, two pushes per share (arXiv 2505.12832)
  lag_cap,       ///< async without gradients that are too old (Maranjyan et al., ICML 2025)
  dana,          ///< async with look-ahead momentum (Hakimi et al., arXiv 1907.11612)
  dc,            ///< async with delay-compensated gradients (Zheng et al., ICML 2017)
  dc_adaptive,   ///< the same with a strength that follows the gradients (DC-ASGD-a there)
  gap_aware,     ///< async; each element of a gradient is divided by how far its parameter has
                 ///< moved, in updates (Barkai et al., ICLR 2020)
  delayed_sync,  ///< sync that hides its communication: workers are one version behind, and get
                 ///< parameters where the momentum leads next (after Xu et al., arXiv 2005.06728)
  softsync,      ///< one update from several gradients, whoever's (Zhang et al., IJCAI 2016)
  backup,        ///< sync that drops the slowest gradients (Chen et al., arXiv 1604.00981)
};

/// Which ranks are servers.
enum class ServerPlacement {
  last,    ///< the highest ranks
  first,   ///< the lowest ranks
  spread,  ///< the last rank of each of equal groups: one per node if nodes have equally many ranks
  listed   ///< as listed
};

/// Servers hold the parameters, workers compute gradients.
struct PsConfig {
  static constexpr std::string_view name = "ps";
  static constexpr std::string_view description =
      "servers own the parameters; workers send them gradients, together or each on its own";
  int servers = 1;
  ServerPlacement server_ranks = ServerPlacement::last;
  std::vector<int> listed_ranks;  ///< of server_ranks: listed
  double chunk_mb = 4;            ///< pieces in which parameters and gradients travel [MiB]
  enum class Transport { automatic, two_sided, rma };
  Transport transport = Transport::two_sided;
  PsMode mode = PsMode::sync;
  Compression compression;  ///< of gradients that workers push
  // Parts of the policy; those not given are the mode's. Each mode's own number is in section
  // strategy, the others are in section advanced.
  std::optional<ServerPolicy::Gate> gate;
  std::optional<int> staleness;  ///< of gate ssp: steps by which a worker may be ahead
  std::optional<int> count;      ///< of gate softsync: gradients that make an update
  std::optional<int> backup;     ///< of gate backup: workers that are not waited for
  std::optional<int> lag_cap;    ///< older gradients are dropped or attenuated; 0 is no cap
  std::optional<ServerPolicy::OverCap> over_cap;
  std::optional<ServerPolicy::Weight> weight;
  std::optional<double> dc_lambda;  ///< strength of the delay compensation; 0 is none
  std::optional<double> dc_decay;   ///< of the mean square that divides it; else it is constant
  std::optional<ServerPolicy::Momentum> momentum;
  std::optional<int> delay;       ///< of gate bsp: versions that workers are behind
  std::optional<int> pushes;      ///< that a worker makes of its share of a global batch
  std::optional<int> pull_every;  ///< pushes from one pull to the next
  int pull_at_lag = 0;            ///< a pull before gradients would be so old; 0: see pull_every
  bool cached_reads = false;      ///< of gate ssp: a pull when the bound demands it
  ServerPolicy::Pulls pulls = ServerPolicy::Pulls::consistent;
  int warm_start = 0;     ///< steps of which each is one update of all workers
  int micro_batches = 1;  ///< forward and backward passes for one push
  int slow_worker = -1;   ///< the one that is made slower, for experiments; -1 is none
  double slow = 1;        ///< by this factor

  /// Whether one rank does what the strategy is for: it may play several workers.
  bool works_on_one_rank() const { return false; }
};

/// Of section `strategy`, bound to `config`; the parts of a policy in section `advanced`, what
/// disturbs a run in section `experiment`.
Keys keys_of(PsConfig& config);
/// What follows from other keys where it was not given.
void derive_defaults(PsConfig& config, GivenKeys const& given);
/// What `plan --compare` shows of it, by name; with what `given` says of more than one of them.
std::vector<std::pair<std::string, PsConfig>> alternatives(PsConfig const& given);

/// Where the key of a part of a policy stands: "gate" -> "advanced.gate".
std::string path_of_part(std::string_view name);

/// The policy that mode and parts make. Error(usage) naming parts that contradict one another.
ServerPolicy policy_of(PsConfig const& config, int workers);

}  // namespace stratagem
