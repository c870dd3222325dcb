#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/bench.hpp"
#include "data/clients.hpp"
#include "data/sampler.hpp"
#include "gpu/memory.hpp"
#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "params/parameter_layout.hpp"
#include "strategy/placement.hpp"
#include "strategy/shared/accumulate.hpp"

namespace stratagem {

class PlannedStrategy;

/// When ranks that make passes know the results of the others.
enum class Results {
  each_step,   ///< after every step, which is one of all workers
  at_meeting,  ///< when all meet after a round of such steps; until then, each knows its own
  of_pushes,   ///< likewise, and a step is one worker's, made when its share was dealt to it
};

/// What a strategy will hold and move, known before it runs: a value that all layers above read
/// without knowing which strategy it is.
struct StrategyPlan {
  int workers = 1;           ///< that compute gradients, each on a part of the global batch
  int pushes = 1;            ///< of a worker per step: parts of its share
  int micro_batches = 1;     ///< passes for each of them
  int batches_per_step = 1;  ///< global batches of the configuration: own steps of each worker
  Placement placement{1};    ///< only workers are handed batches
  std::vector<int> holders;  ///< ranks that may want whole tensors
  Results results = Results::each_step;
  int sync_every = 1;  ///< steps from one exchange among the workers to the next
  /// Where samples belong to clients: a step is one of those drawn for it, each of which is a
  /// worker that is handed its own samples.
  std::optional<ClientConfig> clients;

  gpu::MemoryUse memory;         ///< lasting bytes per rank; activations and workspace are 0 here
  gpu::MemoryUse server_memory;  ///< the same of the server with the most
  std::vector<std::int64_t> server_bytes;  ///< the same of each server, in all
  std::int64_t element_size = 4;           ///< of parameters and gradients [B]
  int saved_copies = 1;  ///< of parameters and optimizer state that a checkpoint has
  int saved_states = 0;  ///< that it has for each parameter besides
  std::int64_t bytes_sent_per_step = 0;       ///< by each rank that computes
  std::int64_t most_bytes_sent_per_step = 0;  ///< by the rank that sends most

  /// On what the numbers of a training depend: the order in which gradients are added, whether they
  /// are those of `serial` with the same options and codes, and what else is chosen, by its key.
  std::string order_of_sums;
  bool numbers_of_serial = true;
  std::map<std::string, std::string> choices;

  // On what its time depends.
  std::vector<BenchOperation> operations;  ///< that a step consists of
  std::string server_work;           ///< of a push, as calibrations name it; empty: no servers
  std::int64_t server_elements = 0;  ///< of the largest shard
  std::int64_t warm_start = 0;       ///< first steps, which are like those of `begins_like`
  std::shared_ptr<StrategyPlan const> begins_like;

  /// On a GPU, as a graph: a step waits for nothing before its passes are made and summed.
  bool steps_can_be_kept = false;

  /// Of the parts of the plan, by name; equal on all ranks.
  std::vector<std::pair<std::string, std::uint64_t>> hashes;
  std::shared_ptr<PlannedStrategy const> strategy;  ///< never empty

  /// Of all of them.
  std::uint64_t hash() const;
  /// False where the others can continue without this rank: asynchronous servers do without a
  /// worker, but no worker does without a server.
  bool is_vital(int rank) const { return synchronous() || placement.serves(rank); }
  /// Every step is one of all workers; else each steps by itself, and shares of a round are dealt
  /// as it goes.
  bool synchronous() const { return results != Results::of_pushes; }
  bool shares_results() const { return results == Results::each_step; }
  /// True where some rank does not see the result of every step: all ranks meet after a round.
  bool meets_after_rounds() const { return !shares_results() || placement.servers() > 0; }
  /// Ranks that want a core all the time: workers, and asynchronous servers, which look for
  /// messages.
  int awake_ranks() const;
};

/// What a plan depends on beside the strategy's own options.
struct PlanInput {
  Model const& model;
  OptimizerConfig optimizer;
  PrecisionConfig precision;
  int ranks = 1;
  ParameterLayout layout;
};
PlanInput plan_input(Model const& model, OptimizerConfig const& optimizer,
                     PrecisionConfig const& precision, int ranks);

/// Of ranks that all compute and hold everything: what strategies change from.
StrategyPlan plan_of_replicas(PlanInput const& input);

/// "2 micro-batches", and whether they are summed over workers first: StrategyPlan::order_of_sums.
std::string order_of_sums(int micro_batches, Accumulate accumulate = Accumulate::unsharded);

/// Of each rank, on average [B].
std::int64_t all_reduce_bytes(std::int64_t bytes, int ranks);

/// "first .. last", or the one name of both blocks; for tables.
std::string block_range(int first, int last, Model const& model);

}  // namespace stratagem
