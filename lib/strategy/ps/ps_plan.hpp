#pragma once

#include "gpu/memory.hpp"
#include "optim/optim_config.hpp"
#include "params/server_plan.hpp"
#include "strategy/plan.hpp"
#include "strategy/ps/ps_config.hpp"
#include "strategy/shared/gradient_scale.hpp"

namespace stratagem {

/// What a parameter server has decided before it runs.
struct PsPlan {
  PsConfig config;
  ServerPolicy policy;
  Placement placement;
  ServerPlan servers;

  int workers() const { return placement.workers(); }
  /// The rank of the server that owns a chunk.
  int owner_of(ServerChunk const& chunk) const { return placement.rank_of_server(chunk.server); }
  /// Of gradients of so many elements, in whole blocks; 0 where they are not coded.
  std::int64_t code_bytes(std::int64_t elements) const {
    auto const& compression = config.compression;
    return compression.on() ? wire_bytes(compression.code, elements / block_elements) : 0;
  }
};
PsPlan plan_ps(PsConfig const& config, ParameterLayout const& layout, int ranks,
               std::int64_t element_size);

/// Where a chunk lies in its server's shard.
FlatRange shard_range(ServerChunk const& chunk);
/// A chunk within its server's shard.
at::Tensor in_shard(at::Tensor const& shard, ServerChunk const& chunk);
/// A chunk within what is laid out as the parameters.
at::Tensor in_flat(at::Tensor const& flat, ServerChunk const& chunk);

/// What has one version.
struct VersionDomain {
  std::vector<ServerChunk> chunks;  ///< in the order of the plan
  FlatRange range;                  ///< of the server's shard
};
/// Of one server: its whole shard, or each chunk of it.
std::vector<VersionDomain> version_domains(ServerPolicy const& policy, ServerPlan const& plan,
                                           int server);

/// Which elements of its range belong to parameters of one dimension, counted from its begin.
std::vector<FlatRange> vectors_in(VersionDomain const& domain, ParameterLayout const& layout);

/// A chunk within a part of its server's shard that begins at `begin`.
at::Tensor in_part(at::Tensor const& part, std::int64_t begin, ServerChunk const& chunk);

/// What servers keep for each parameter: the optimizer's state, and the policy's.
std::vector<std::string> kept_kinds(ServerPolicy const& policy, OptimizerConfig const& optimizer);
/// Lasting bytes of a server whose shard has so many elements.
gpu::MemoryUse server_memory(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                             std::int64_t shard, int workers, std::int64_t element_size);

/// Of a gradient: in sync, the sum over workers; else one worker's own.
GradientScale make_gradient_scale(PsPlan const& plan, OptimizerConfig const& optimizer,
                                  PrecisionConfig const& precision);

/// Error(usage) naming what a parameter server does not do.
void check_ps(PsPlan const& plan, OptimizerConfig const& optimizer);

StrategyPlan plan_of(PsConfig const& config, PlanInput const& input);

}  // namespace stratagem
