#include "strategy/strategy_config.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stratagem {
namespace {

template <std::size_t... I>
std::vector<StrategyConfig> one_of_each(std::index_sequence<I...>) {
  return {StrategyConfig(std::in_place_index<I>)...};
}

/// Another name puts another strategy, with its defaults, in the place of this one.
Value strategy_name(StrategyConfig& strategy) {
  std::vector<std::string> names;
  for (auto const& each : all_strategies()) names.emplace_back(name_of(each));
  return one_of(
      names, [&strategy] { return std::string(name_of(strategy)); },
      [&strategy](std::size_t position) {
        if (position != strategy.index()) strategy = all_strategies()[position];
      });
}

template <class Config>
void add_alternatives(std::vector<Alternative>& all, Config const& given) {
  for (auto const& [name, config] : alternatives(given)) all.push_back({name, config});
}

}  // namespace

std::vector<StrategyConfig> all_strategies() {
  return one_of_each(std::make_index_sequence<std::variant_size_v<StrategyConfig>>());
}

StrategyConfig default_strategy() {
  return DdpConfig{};
}

StrategyConfig serial_strategy() {
  return SerialConfig{};
}

std::string_view name_of(StrategyConfig const& config) {
  return std::visit([](auto const& chosen) { return chosen.name; }, config);
}

std::string_view description_of(StrategyConfig const& config) {
  return std::visit([](auto const& chosen) { return chosen.description; }, config);
}

StrategyConfig strategy_named(std::string_view name) {
  auto const all = all_strategies();
  auto const found = std::ranges::find(all, name, [](auto const& one) { return name_of(one); });
  return all.at(static_cast<std::size_t>(found - all.begin()));
}

Keys keys_of(StrategyConfig& strategy) {
  Keys keys{{"name", strategy_name(strategy), "how the ranks share the work", true}};
  std::ranges::move(std::visit([](auto& config) { return keys_of(config); }, strategy),
                    std::back_inserter(keys));
  return keys;
}

void derive_defaults(StrategyConfig& config, GivenKeys const& given) {
  if (auto* ps = std::get_if<PsConfig>(&config)) derive_defaults(*ps, given);
}

std::vector<std::string> own_state_kinds() {
  std::vector<std::string> kinds(ServerPolicy::kinds.begin(), ServerPolicy::kinds.end());
  kinds.insert(kinds.end(), {LocalConfig::outer_parameters, LocalConfig::outer_momentum_sum,
                             LocalConfig::arriving, FedAvgConfig::momentum_sum});
  for (auto const kind : {Compression::residual, Compression::residual_of_sum,
                          Compression::velocity, Compression::right_factor})
    kinds.emplace_back(kind);
  return kinds;
}

int servers_of(StrategyConfig const& config) {
  auto const* ps = std::get_if<PsConfig>(&config);
  return ps == nullptr ? 0 : ps->servers;
}

int least_ranks(StrategyConfig const& config) {
  return std::holds_alternative<SerialConfig>(config) ? 1 : 2;
}

bool works_on_one_rank(StrategyConfig const& config) {
  return std::visit([](auto const& chosen) { return chosen.works_on_one_rank(); }, config);
}

std::vector<Alternative> alternatives(StrategyConfig const& chosen) {
  std::vector<Alternative> all;
  for (auto const& each : all_strategies()) {
    auto const& given = each.index() == chosen.index() ? chosen : each;
    std::visit([&](auto const& config) { add_alternatives(all, config); }, given);
  }
  return all;
}

}  // namespace stratagem
