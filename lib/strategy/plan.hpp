#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/bench.hpp"
#include "data/sampler.hpp"
#include "gpu/memory.hpp"
#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "params/parameter_layout.hpp"
#include "strategy/placement.hpp"
#include "strategy/shared/accumulate.hpp"

namespace stratagem {

class PlannedStrategy;
class PlannedClients;
class PlannedOffline;

/// When ranks that make passes know the results of the others.
enum class Results {
  each_step,   ///< after every step, which is one of all workers
  at_meeting,  ///< when all meet after a round of such steps; until then, each knows its own
  of_pushes,   ///< likewise, and a step is one worker's, made when its share was dealt to it
};

/// How a global batch is divided among passes.
struct Shares {
  int workers = 1;           ///< that compute gradients, each on a part of the global batch
  int pushes = 1;            ///< of a worker per step: parts of its share
  int micro_batches = 1;     ///< passes for each of them
  int batches_per_step = 1;  ///< global batches of the configuration: own steps of each worker
  /// Where samples belong to clients: a step is one of those drawn for it, each of which is a
  /// worker that is handed its own samples. Else empty.
  std::shared_ptr<PlannedClients const> clients;
};

/// What a checkpoint has, and whole tensors are made by.
struct Saved {
  int copies = 1;            ///< of parameters and optimizer state
  int states = 0;            ///< for each parameter besides
  std::vector<int> holders;  ///< ranks that may want whole tensors
};

/// What a step moves.
struct Traffic {
  std::int64_t bytes_sent = 0;             ///< by each rank that computes
  std::int64_t most_bytes_sent = 0;        ///< by the rank that sends most
  std::vector<BenchOperation> operations;  ///< that a step consists of
  std::map<BenchOperation, int> among;     ///< ranks of those that are not of all

  int ranks_of(BenchOperation operation, int all) const {
    auto const found = among.find(operation);
    return found == among.end() ? all : found->second;
  }
};

/// On what the numbers of a training depend.
struct Numbers {
  std::string order_of_sums;  ///< in which gradients are added
  bool of_serial = true;      ///< they are those of `serial` with the same options and codes
  std::map<std::string, std::string> choices;  ///< what else is chosen, by its key
};

/// The servers of a plan that has some.
struct Servers {
  gpu::MemoryUse memory;            ///< as StrategyPlan::memory, of the server with the most
  std::vector<std::int64_t> bytes;  ///< the same of each server, in all
  std::string work;                 ///< of a push, as calibrations name it; empty: no servers
  std::int64_t elements = 0;        ///< of the largest shard
  /// Trainings of them in one process; empty where the result follows from the configuration.
  std::shared_ptr<PlannedOffline const> offline;
};

struct StrategyPlan;

/// First steps that are like those of another plan.
struct WarmStart {
  std::int64_t steps = 0;
  std::shared_ptr<StrategyPlan const> like;
};

/// What a strategy will hold and move, known before it runs: a value that all layers above read
/// without knowing which strategy it is.
struct StrategyPlan {
  Placement placement{1};  ///< only workers are handed batches
  Shares shares;
  Results results = Results::each_step;
  int sync_every = 1;             ///< steps from one exchange among the workers to the next
  gpu::MemoryUse memory;          ///< lasting bytes per rank; activations and workspace are 0 here
  std::int64_t element_size = 4;  ///< of parameters and gradients [B]
  Saved saved;
  Traffic traffic;
  Numbers numbers;
  Servers servers;
  WarmStart warm_start;
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

/// "2 micro-batches", whether they are summed over workers first, and in how many groups of
/// `workers`, if that changes anything: Numbers::order_of_sums.
std::string order_of_sums(int micro_batches, Accumulate accumulate = Accumulate::unsharded,
                          int groups = 1, int workers = 1);

/// Of each rank, on average [B].
std::int64_t all_reduce_bytes(std::int64_t bytes, int ranks);

/// "1, 2, 3, 6", for messages.
std::string divisors_text(int number);

/// "first .. last", or the one name of both blocks; for tables.
std::string block_range(int first, int last, Model const& model);

}  // namespace stratagem
