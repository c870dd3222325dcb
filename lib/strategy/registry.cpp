#include "strategy/registry.hpp"

#include "strategy/ddp/ddp_plan.hpp"
#include "strategy/fedavg/fedavg_plan.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"
#include "strategy/gossip/gossip_plan.hpp"
#include "strategy/local/local_plan.hpp"
#include "strategy/ps/protocol/transport_bench.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/ps/server_ranks.hpp"
#include "strategy/serial/serial_plan.hpp"

namespace stratagem {

Placement place_ranks(StrategyConfig const& config, int ranks) {
  if (auto const* ps = std::get_if<PsConfig>(&config)) return place_servers(*ps, ranks);
  return Placement(ranks);
}

StrategyPlan plan_strategy(StrategyConfig const& config, Model const& model,
                           OptimizerConfig const& optimizer, PrecisionConfig const& precision,
                           int ranks) {
  auto const input = plan_input(model, optimizer, precision, ranks);
  return std::visit([&](auto const& chosen) { return plan_of(chosen, input); }, config);
}

std::vector<std::pair<std::string_view, double>> exchange_times(World& world, std::int64_t bytes,
                                                                int rounds) {
  auto const times = measure_transports(world, bytes, PsConfig().chunk_mb, rounds);
  return {{"two_sided", times.two_sided}, {"rma", times.rma}, {"copies", times.bound}};
}

Member make_member(StrategyConfig const& config, StrategyParts const& parts) {
  auto const plan = plan_strategy(config, parts.model, parts.optimizer, parts.precision,
                                  parts.world.all().size());
  return plan.strategy->make(parts);
}

}  // namespace stratagem
