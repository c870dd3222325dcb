#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "strategy/ddp/ddp_config.hpp"
#include "strategy/fsdp/fsdp_config.hpp"
#include "strategy/ps/ps_config.hpp"
#include "strategy/serial/serial_config.hpp"

namespace stratagem {

/// Section `strategy` of the configuration: all strategies there are.
using StrategyConfig = std::variant<SerialConfig, DdpConfig, FsdpConfig, PsConfig>;

/// One of each, with its defaults; in the order of the alternatives.
std::vector<StrategyConfig> all_strategies();

std::string_view name_of(StrategyConfig const& config);
std::string_view description_of(StrategyConfig const& config);
/// Ranks that serve.
int servers_of(StrategyConfig const& config);
/// The fewest ranks on which the strategy does what it is for.
int least_ranks(StrategyConfig const& config);

}  // namespace stratagem
