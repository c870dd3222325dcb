#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compress/compression.hpp"
#include "keys/key.hpp"
#include "strategy/ddp/ddp_config.hpp"
#include "strategy/fedavg/fedavg_config.hpp"
#include "strategy/fsdp/fsdp_config.hpp"
#include "strategy/gossip/gossip_config.hpp"
#include "strategy/local/local_config.hpp"
#include "strategy/ps/ps_config.hpp"
#include "strategy/serial/serial_config.hpp"

namespace stratagem {

/// Section `strategy` of the configuration: all strategies there are.
using StrategyConfig = std::variant<SerialConfig, DdpConfig, FsdpConfig, LocalConfig, GossipConfig,
                                    FedAvgConfig, PsConfig>;

/// One of each, with its defaults; in the order of the alternatives.
std::vector<StrategyConfig> all_strategies();
/// Where no strategy is named; and the one that is what the others are held against.
StrategyConfig default_strategy();
StrategyConfig serial_strategy();

std::string_view name_of(StrategyConfig const& config);
std::string_view description_of(StrategyConfig const& config);
/// The strategy of that name, with its defaults. There has to be one.
StrategyConfig strategy_named(std::string_view name);

/// Of section `strategy`, bound to `config`: valid while it keeps its kind.
Keys keys_of(StrategyConfig& config);
/// What follows from other keys where it was not given.
void derive_defaults(StrategyConfig& config, GivenKeys const& given);

/// Kinds of state that strategies keep for each parameter beside the optimizer's: checkpoints name
/// these, too.
std::vector<std::string> own_state_kinds();

/// Ranks that serve.
int servers_of(StrategyConfig const& config);
/// The fewest ranks on which the strategy does what it is for.
int least_ranks(StrategyConfig const& config);
/// Forward and backward passes of a worker per step.
int micro_batches_of(StrategyConfig const& config);
StrategyConfig with_micro_batches(StrategyConfig config, int count);
/// Whether one rank is enough for that: it may play several workers.
bool works_on_one_rank(StrategyConfig const& config);

/// One way to share the work, for those who choose between several.
struct Alternative {
  std::string name;  ///< "ddp", "fsdp full", "ps sync", ...
  StrategyConfig config;
  /// Options of the chosen strategy, other than by default, that this one does not have: "overlap:
  /// false".
  std::vector<std::string> without = {};
  bool same_numbers = true;  ///< none of these changes what is computed
};
/// DDP first, the simplest. Strategies of its kind have all options of `chosen`; others have those
/// that mean the same under all strategies (micro_batches, compression, ...), and defaults beside.
std::vector<Alternative> alternatives(StrategyConfig const& chosen);

}  // namespace stratagem
