#include "strategy/ps/ps_plan.hpp"

#include <algorithm>
#include <iterator>

#include <ATen/ATen.h>

#include "base/arithmetic.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/ps/protocol/transport.hpp"
#include "strategy/ps/server_ranks.hpp"
#include "strategy/shared/update.hpp"

namespace stratagem {
namespace {

/// Some parts of a policy make sense for SGD alone, whose step is linear in the gradient and in the
/// momentum.
void check_rule(PsPlan const& plan, OptimizerConfig const& optimizer) {
  auto const& policy = plan.policy;
  if (auto const* sgd = std::get_if<SgdConfig>(&optimizer.rule)) {
    if (policy.momentum == ServerPolicy::Momentum::look_ahead && sgd->nesterov)
      throw Error(ExitCode::usage, "optimizer.nesterov together with look-ahead momentum",
                  "the look-ahead is Nesterov's already", "leave one of them out");
    if (policy.cached_reads && sgd->momentum != 0)
      throw Error(ExitCode::usage, "advanced.cached_reads together with optimizer.momentum",
                  "a worker applies its own updates to cached parameters, but a momentum has the "
                  "gradients of others, too",
                  "take optimizer.momentum: 0, or leave out advanced.cached_reads");
    return;
  }
  auto const refuse = [&](bool is_there, char const* part, char const* why) {
    if (is_there)
      throw Error(ExitCode::usage,
                  str(path_of_part(part), " together with optimizer.name: ", name_of(optimizer)),
                  why, "take strategy.mode: sync or async, or optimizer.name: sgd");
  };
  char const* const factor = "its step hardly depends on a factor of the gradient";
  refuse(policy.momentum != ServerPolicy::Momentum::shared, "momentum",
         "a look-ahead, and a momentum per worker, are defined for SGD");
  refuse(policy.weight != ServerPolicy::Weight::one, "weight", factor);
  refuse(policy.lag_cap > 0 && policy.over_cap == ServerPolicy::OverCap::attenuate, "over_cap",
         factor);
  refuse(policy.pushes > 1, "pushes", factor);
  refuse(policy.cached_reads, "cached_reads", "a worker cannot tell what its own gradient does");
  refuse(policy.correction > 0, "dc_lambda", "delay compensation is defined for SGD");
  char const* const counts = "parts of the model would be updated different numbers of times";
  refuse(policy.pulls == ServerPolicy::Pulls::chunkwise, "pulls", counts);
  refuse(policy.lag_cap > 0 && plan.config.servers > 1, "lag_cap", counts);
}

}  // namespace

PsPlan plan_ps(PsConfig const& config, ParameterLayout const& layout, int ranks,
               std::int64_t element_size) {
  auto placement = place_servers(config, ranks);
  auto const bytes = saturated(config.chunk_mb * (1 << 20));
  auto servers = make_server_plan(layout, config.servers, bytes, element_size);
  auto policy = policy_of(config, placement.workers());
  return {config, std::move(policy), std::move(placement), std::move(servers)};
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

std::vector<FlatRange> vectors_in(VersionDomain const& domain, ParameterLayout const& layout) {
  OwnedElements owned{.size = domain.range.size()};
  for (auto const& chunk : domain.chunks)
    note_vectors(owned, layout, chunk.range, chunk.offset - domain.range.begin);
  return owned.vectors;
}

std::vector<std::string> kept_kinds(ServerPolicy const& policy, OptimizerConfig const& optimizer) {
  auto kinds = state_kinds(optimizer);
  std::ranges::move(policy.state_kinds(), std::back_inserter(kinds));
  return kinds;
}

gpu::MemoryUse server_memory(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                             std::int64_t shard, int workers, std::int64_t element_size) {
  bool const one_momentum =
      policy.momentum == ServerPolicy::Momentum::shared || !policy.asynchronous();
  bool const looks_ahead =
      policy.momentum == ServerPolicy::Momentum::look_ahead && momentum_of(optimizer) != 0;
  auto const bytes = shard * element_size;
  gpu::MemoryUse use;
  use[gpu::MemoryCategory::parameters] = bytes * (1 + (policy.asynchronous() ? workers
                                                       : looks_ahead         ? 1
                                                                             : 0));
  use[gpu::MemoryCategory::gradients] = bytes * (workers + (policy.collects() ? 1 : 0));
  auto const own = static_cast<std::int64_t>(policy.state_kinds().size());
  use[gpu::MemoryCategory::optimizer] =
      bytes * (state_count(optimizer) * (one_momentum ? 1 : workers) + own);
  return use;
}

GradientScale make_gradient_scale(PsPlan const& plan, OptimizerConfig const& optimizer,
                                  PrecisionConfig const& precision) {
  int const summed = plan.policy.asynchronous() ? 1 : plan.workers();
  return {optimizer, precision, terms_of_mean(optimizer, summed, plan.config.micro_batches)};
}

void check_ps(PsPlan const& plan, OptimizerConfig const& optimizer) {
  check_transport(plan);
  check_rule(plan, optimizer);
  if (plan.config.slow_worker >= plan.workers())
    throw Error(ExitCode::usage, str("experiment.slow_worker: ", plan.config.slow_worker),
                str("workers are numbered from 0 to ", plan.workers() - 1), "take one of them");
}

}  // namespace stratagem
