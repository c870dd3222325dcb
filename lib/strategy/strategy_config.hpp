#pragma once

#include <string_view>
#include <variant>

namespace stratagem {

/// One process; with emulate_ranks N it makes the steps that N ranks would make together.
struct SerialConfig {
  static constexpr std::string_view name = "serial";
  int emulate_ranks = 1;
  int micro_batches = 1;
};

/// Replicas whose gradients are averaged in buckets.
struct DdpConfig {
  static constexpr std::string_view name = "ddp";
  double bucket_mb = 25;  ///< a bucket closes when it holds this much [MiB]
  bool overlap = true;    ///< communicate while the backward pass goes on
  int micro_batches = 1;  ///< forward and backward passes per step
};

/// Section `strategy` of the configuration.
using StrategyConfig = std::variant<SerialConfig, DdpConfig>;

inline std::string_view name_of(StrategyConfig const& config) {
  return std::visit([](auto const& c) { return c.name; }, config);
}

}  // namespace stratagem
