#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/sampler.hpp"
#include "gpu/memory.hpp"
#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "params/bucket_plan.hpp"
#include "params/server_plan.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"
#include "strategy/strategy_config.hpp"

namespace stratagem {

/// The buckets of `config` for parameters of `element_size` bytes: what `plan` shows is what runs.
BucketPlan plan_buckets(DdpConfig const& config, ParameterLayout const& layout,
                        std::int64_t element_size);

/// What a strategy will hold and move, known before it runs.
struct StrategyPlan {
  int workers = 1;               ///< that compute gradients, each on a part of the global batch
  int pushes = 1;                ///< of a worker per step: parts of its share
  int micro_batches = 1;         ///< passes for each of them
  gpu::MemoryUse memory;         ///< lasting bytes per rank; activations and workspace are 0 here
  BucketPlan buckets;            ///< DDP's; empty for others
  std::optional<FsdpPlan> fsdp;  ///< FSDP's
  std::optional<ServerPlan> servers;       ///< the parameter server's
  gpu::MemoryUse server_memory;            ///< as `memory`, of the server with the most
  std::vector<std::int64_t> server_bytes;  ///< the same of each server, in all
  Roles roles;                             ///< only workers are handed batches
  std::vector<int> holders;                ///< ranks that can gather whole tensors
  bool synchronous = true;                 ///< every step is one of all workers; else each goes on
                                           ///< by itself, and shares of a round are dealt as it goes
  std::int64_t element_size = 4;           ///< of parameters and gradients [B]
  std::int64_t bytes_sent_per_step = 0;    ///< by each rank
  /// Of the parts of the plan, by name; equal on all ranks.
  std::vector<std::pair<std::string, std::uint64_t>> hashes;

  /// Of all of them.
  std::uint64_t hash() const;
  /// False where the others can go on without this rank: asynchronous servers do without a worker,
  /// but no worker does without a server.
  bool is_vital(int rank) const;
  /// True where some rank does not see the result of every step: all ranks meet after a round.
  bool meets_after_rounds() const { return !roles.servers.empty(); }
  /// A rank's part of a global batch, or of the test images; none for a server.
  std::optional<RankSlice> slice_of(int rank) const;
};

/// Error(usage) when the strategy cannot run on so many ranks.
StrategyPlan plan_strategy(StrategyConfig const& config, Model const& model,
                           OptimizerConfig const& optimizer, PrecisionConfig const& precision,
                           int ranks);

}  // namespace stratagem
