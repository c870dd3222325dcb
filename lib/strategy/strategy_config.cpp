#include "strategy/strategy_config.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.hpp"

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

/// Options that mean the same under all strategies that have them; those of a code come after it.
constexpr std::array<std::string_view, 10> common_options{
    "workers",  "micro_batches",  "overlap", "parameter_compression", "compression",
    "rounding", "error_feedback", "ratio",   "matrix_rank",           "momentum_correction"};
constexpr std::string_view code_option = "compression", speed_option = "overlap";

Key const* key_named(Keys const& keys, std::string_view name) {
  auto const found = std::ranges::find(keys, name, &Key::path);
  return found == keys.end() ? nullptr : &*found;
}

/// Gives `other` what `chosen` says in the options that mean the same. Returns those that differ
/// from their defaults and that `other` does not have.
std::vector<std::string> carry(StrategyConfig chosen, StrategyConfig& other) {
  auto usual = all_strategies()[chosen.index()];
  auto const from = keys_of(chosen), defaults = keys_of(usual), to = keys_of(other);
  std::vector<std::string> without;
  for (auto const& name : common_options) {
    auto const* given = key_named(from, name);
    if (given == nullptr) continue;
    auto const text = given->value.get();
    auto const* target = key_named(to, name);
    if (target != nullptr && !target->value.set({.text = text})) continue;
    if (text == key_named(defaults, name)->value.get()) continue;
    without.push_back(str(name, ": ", text));
    if (name == code_option) break;  // what follows says how it is written
  }
  return without;
}

template <class Config>
void add_alternatives(std::vector<Alternative>& all, Config const& given,
                      std::vector<std::string> const& without) {
  bool const same_numbers = std::ranges::all_of(
      without, [](std::string const& option) { return option.starts_with(speed_option); });
  for (auto const& [name, config] : alternatives(given))
    all.push_back({name, config, without, same_numbers});
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

int micro_batches_of(StrategyConfig const& config) {
  return std::visit([](auto const& chosen) { return chosen.micro_batches; }, config);
}

StrategyConfig with_micro_batches(StrategyConfig config, int count) {
  std::visit([count](auto& chosen) { chosen.micro_batches = count; }, config);
  return config;
}

bool works_on_one_rank(StrategyConfig const& config) {
  return std::visit([](auto const& chosen) { return chosen.works_on_one_rank(); }, config);
}

std::vector<Alternative> alternatives(StrategyConfig const& chosen) {
  std::vector<Alternative> all;
  for (auto const& each : all_strategies()) {
    auto given = each.index() == chosen.index() ? chosen : each;
    auto const without = carry(chosen, given);
    std::visit([&](auto const& config) { add_alternatives(all, config, without); }, given);
  }
  return all;
}

}  // namespace stratagem
