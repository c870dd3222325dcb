#include "strategy/factory.hpp"

#include "strategy/ddp/ddp.hpp"
#include "strategy/fsdp/fsdp.hpp"
#include "strategy/serial/serial.hpp"

namespace stratagem {
namespace {

std::unique_ptr<Strategy> make(SerialConfig const& config, StrategyParts const& parts) {
  return std::make_unique<Serial>(config, parts);
}
std::unique_ptr<Strategy> make(DdpConfig const& config, StrategyParts const& parts) {
  return std::make_unique<Ddp>(config, parts);
}
std::unique_ptr<Strategy> make(FsdpConfig const& config, StrategyParts const& parts) {
  return std::make_unique<Fsdp>(config, parts);
}

}  // namespace

std::unique_ptr<Strategy> make_strategy(StrategyConfig const& config, StrategyParts const& parts) {
  return std::visit([&](auto const& chosen) { return make(chosen, parts); }, config);
}

std::vector<StrategyEntry> const& strategy_catalogue() {
  static std::vector<StrategyEntry> const entries{
      {std::string(SerialConfig::name),
       "one process; with emulate_ranks, the steps that so many ranks would make"},
      {std::string(DdpConfig::name),
       "replicas whose gradients are all-reduced in buckets behind the backward pass"},
      {std::string(FsdpConfig::name),
       "each rank owns a shard of the optimizer's state, the gradients and the parameters (ZeRO)"},
  };
  return entries;
}

}  // namespace stratagem
