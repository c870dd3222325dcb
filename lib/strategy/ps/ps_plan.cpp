#include "strategy/ps/ps_plan.hpp"

#include <ATen/ATen.h>

#include "base/arithmetic.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/ps/protocol/transport.hpp"
#include "strategy/shared/update.hpp"

namespace stratagem {

ServerPlan plan_servers(PsConfig const& config, ParameterLayout const& layout, int ranks,
                        std::int64_t element_size) {
  auto const bytes = saturated(config.chunk_mb * (1 << 20));
  return make_server_plan(
      layout, assign_roles(ranks, config.servers, config.server_ranks, config.listed_ranks), bytes,
      element_size);
}

PsPlan plan_ps(PsConfig const& config, ParameterLayout const& layout, int ranks,
               std::int64_t element_size) {
  auto servers = plan_servers(config, layout, ranks, element_size);
  return {config, policy_of(config, servers.workers()), std::move(servers)};
}

FlatRange shard_range(ServerChunk const& chunk) {
  return {chunk.offset, chunk.offset + chunk.range.size()};
}

at::Tensor in_shard(at::Tensor const& shard, ServerChunk const& chunk) {
  return in_part(shard, 0, chunk);
}

at::Tensor in_part(at::Tensor const& part, std::int64_t begin, ServerChunk const& chunk) {
  return part.narrow(0, chunk.offset - begin, chunk.range.size());
}

at::Tensor in_flat(at::Tensor const& flat, ServerChunk const& chunk) {
  return flat.narrow(0, chunk.range.begin, chunk.range.size());
}

std::vector<VersionDomain> version_domains(ServerPolicy const& policy, ServerPlan const& plan,
                                           int server) {
  auto const own = plan.chunks_of(server);
  if (policy.pulls == ServerPolicy::Pulls::consistent)
    return {{own, {0, plan.shards[static_cast<std::size_t>(server)]}}};
  std::vector<VersionDomain> domains;
  for (auto const& chunk : own) domains.push_back({{chunk}, shard_range(chunk)});
  return domains;
}

gpu::MemoryUse server_memory(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                             std::int64_t shard, int workers, std::int64_t element_size) {
  bool const one_momentum =
      policy.momentum == ServerPolicy::Momentum::shared || !policy.asynchronous();
  bool const looks_ahead =
      policy.momentum == ServerPolicy::Momentum::look_ahead && optimizer.momentum != 0;
  auto const bytes = shard * element_size;
  gpu::MemoryUse use;
  use[gpu::MemoryCategory::parameters] = bytes * (1 + (policy.asynchronous() ? workers
                                                       : looks_ahead         ? 1
                                                                             : 0));
  use[gpu::MemoryCategory::gradients] = bytes * (workers + (policy.collects() ? 1 : 0));
  if (optimizer.momentum != 0)
    use[gpu::MemoryCategory::optimizer] = bytes * (one_momentum ? 1 : workers);
  return use;
}

GradientScale make_gradient_scale(PsPlan const& plan, OptimizerConfig const& optimizer,
                                  PrecisionConfig const& precision) {
  int const summed = plan.policy.asynchronous() ? 1 : plan.workers();
  return {optimizer, precision, terms_of_mean(optimizer, summed, plan.config.micro_batches)};
}

void check_ps(PsPlan const& plan, OptimizerConfig const& optimizer) {
  check_transport(plan);
  if (plan.policy.momentum == ServerPolicy::Momentum::look_ahead && optimizer.nesterov)
    throw Error(ExitCode::usage, "optimizer.nesterov beside look-ahead momentum",
                "the look-ahead is Nesterov's already", "leave one of them out");
  if (plan.config.slow_worker >= plan.workers())
    throw Error(ExitCode::usage, str("experiment.slow_worker: ", plan.config.slow_worker),
                str("workers are numbered from 0 to ", plan.workers() - 1), "take one of them");
}

}  // namespace stratagem
