#include "strategy/strategy_config.hpp"

#include <utility>

namespace stratagem {
namespace {

template <std::size_t... I>
std::vector<StrategyConfig> one_of_each(std::index_sequence<I...>) {
  return {StrategyConfig(std::in_place_index<I>)...};
}

}  // namespace

std::vector<StrategyConfig> all_strategies() {
  return one_of_each(std::make_index_sequence<std::variant_size_v<StrategyConfig>>());
}

std::string_view name_of(StrategyConfig const& config) {
  return std::visit([](auto const& chosen) { return chosen.name; }, config);
}

std::string_view description_of(StrategyConfig const& config) {
  return std::visit([](auto const& chosen) { return chosen.description; }, config);
}

int servers_of(StrategyConfig const& config) {
  auto const* ps = std::get_if<PsConfig>(&config);
  return ps == nullptr ? 0 : ps->servers;
}

int least_ranks(StrategyConfig const& config) {
  return std::holds_alternative<SerialConfig>(config) ? 1 : 2;
}

}  // namespace stratagem
