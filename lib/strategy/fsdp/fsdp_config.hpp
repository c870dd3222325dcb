#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compress/compression.hpp"
#include "keys/key.hpp"
#include "strategy/shared/accumulate.hpp"

namespace stratagem {

/// What is spread over the ranks instead of kept by each of them, as ZeRO-1, 2 and 3 have it.
enum class Shard { optimizer, gradients, full };
/// The type in which gradients are summed over ranks.
enum class ReduceType { master, compute };

/// Fully sharded data parallelism.
struct FsdpConfig {
  static constexpr std::string_view name = "fsdp";
  static constexpr std::string_view description =
      "each rank owns a shard of the optimizer's state, the gradients and the parameters (ZeRO)";
  Shard shard = Shard::full;
  int replicas = 1;                   ///< groups of ranks that each hold a whole model in shards
  double unit_mb = 0;                 ///< blocks join a unit until it holds this [MiB]; 0: auto
  bool reshard_after_forward = true;  ///< gather again for the backward pass
  int prefetch = 1;                   ///< units gathered ahead, in both passes
  int keep_units = 0;                 ///< of the last units in forward order: never resharded
  std::string memory_budget;  ///< of lasting bytes per rank; decides prefetch and keep_units
  bool overlap = true;        ///< communicate while blocks compute
  Accumulate accumulate = Accumulate::sharded;
  int micro_batches = 1;
  ReduceType reduce = ReduceType::master;
  Compression compression;                  ///< of gradients on their way into shards
  Code parameter_compression = Code::none;  ///< in which parameters are gathered
  bool poison =
      false;  ///< fill memory that is given up with NaN, for tests; debug builds always do

  /// Whether one rank does what the strategy is for: it may play several workers.
  bool works_on_one_rank() const { return false; }
};

/// Of section `strategy`, bound to `config`.
Keys keys_of(FsdpConfig& config);
/// What `plan --compare` shows of it, by name; with what `given` says of more than one of them.
std::vector<std::pair<std::string, FsdpConfig>> alternatives(FsdpConfig const& given);

}  // namespace stratagem
