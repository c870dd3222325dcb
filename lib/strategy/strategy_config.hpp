#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "strategy/ps/ps_config.hpp"

namespace stratagem {

/// What is added first where a step has several micro-batches: a worker's own gradients
/// (unsharded), or those of all workers for one micro-batch (sharded).
enum class Accumulate { sharded, unsharded };

/// One process; with emulate_ranks N it makes the steps that N ranks would make together.
struct SerialConfig {
  static constexpr std::string_view name = "serial";
  int emulate_ranks = 1;
  int micro_batches = 1;
  Accumulate accumulate = Accumulate::unsharded;  ///< DDP adds as `unsharded` does

  /// True when the gradients of one micro-batch are summed apart from those of all.
  bool sums_micro_batches() const { return accumulate == Accumulate::sharded && micro_batches > 1; }
};

/// Replicas whose gradients are averaged in buckets.
struct DdpConfig {
  static constexpr std::string_view name = "ddp";
  double bucket_mb = 25;  ///< a bucket closes when it holds this much [MiB]
  bool overlap = true;    ///< communicate while the backward pass goes on
  int micro_batches = 1;  ///< forward and backward passes per step
};

/// What is spread over the ranks instead of kept by each of them, as ZeRO-1, 2 and 3 have it.
enum class Shard { optimizer, gradients, full };
/// The type in which gradients are summed over ranks.
enum class ReduceType { master, compute };

/// Fully sharded data parallelism.
struct FsdpConfig {
  static constexpr std::string_view name = "fsdp";
  Shard shard = Shard::full;
  double unit_mb = 4;                 ///< blocks join a unit until it holds this much [MiB]
  bool reshard_after_forward = true;  ///< gather again for the backward pass
  int prefetch = 1;                   ///< units gathered ahead, in both passes
  int keep_units = 0;                 ///< of the last units in forward order: never resharded
  std::string memory_budget;  ///< of lasting bytes per rank; decides prefetch and keep_units
  bool overlap = true;        ///< communicate while blocks compute
  Accumulate accumulate = Accumulate::sharded;
  int micro_batches = 1;
  ReduceType reduce = ReduceType::master;
  bool poison = false;  ///< fill memory that is given up with NaN; debug builds always do
};

/// Section `strategy` of the configuration.
using StrategyConfig = std::variant<SerialConfig, DdpConfig, FsdpConfig, PsConfig>;

inline std::string_view name_of(StrategyConfig const& config) {
  return std::visit([](auto const& c) { return c.name; }, config);
}

}  // namespace stratagem
