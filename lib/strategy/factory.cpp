#include "strategy/factory.hpp"

#include "base/error.hpp"
#include "strategy/ddp/ddp.hpp"
#include "strategy/fsdp/fsdp.hpp"
#include "strategy/model_layout.hpp"
#include "strategy/ps/async_server.hpp"
#include "strategy/ps/async_worker.hpp"
#include "strategy/ps/sync_server.hpp"
#include "strategy/ps/sync_worker.hpp"
#include "strategy/serial/serial.hpp"

namespace stratagem {
namespace {

Member make(SerialConfig const& config, StrategyParts const& parts) {
  return {.strategy = std::make_unique<Serial>(config, parts)};
}
Member make(DdpConfig const& config, StrategyParts const& parts) {
  return {.strategy = std::make_unique<Ddp>(config, parts)};
}
Member make(FsdpConfig const& config, StrategyParts const& parts) {
  return {.strategy = std::make_unique<Fsdp>(config, parts)};
}
Member make(PsConfig const& config, StrategyParts const& parts) {
  auto const roles = assign_roles(parts.communicator.size(), config.servers, config.server_ranks,
                                  config.listed_ranks);
  bool const serves = roles.server_of(parts.communicator.rank()) >= 0;
  if (policy_of(config, static_cast<int>(roles.workers.size())).asynchronous()) {
    if (serves) return {.server = std::make_unique<AsyncPsServer>(config, parts)};
    return {.strategy = std::make_unique<AsyncPsWorker>(config, parts)};
  }
  if (serves) return {.server = std::make_unique<SyncPsServer>(config, parts)};
  return {.strategy = std::make_unique<SyncPsWorker>(config, parts)};
}

}  // namespace

Context StrategyParts::context_of(Batch const& batch) const {
  return {.training = true,
          .dropout = dropout,
          .seed = seed,
          .step = batch.step,
          .first_slot = batch.first_slot};
}

at::Tensor StrategyParts::allocate(gpu::MemoryCategory category, std::int64_t numel) const {
  gpu::MemoryScope const scope(category, device);
  return communicator.allocate(numel, master_type(precision.compute));
}

Member make_member(StrategyConfig const& config, StrategyParts const& parts) {
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
      {std::string(PsConfig::name),
       "servers own the parameters; workers send them gradients, together or each on its own"},
  };
  return entries;
}

}  // namespace stratagem
