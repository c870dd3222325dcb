#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compress/compression.hpp"
#include "keys/key.hpp"
#include "strategy/shared/accumulate.hpp"

namespace stratagem {

/// One process; with emulate_ranks N it makes the steps that N ranks would make together.
struct SerialConfig {
  static constexpr std::string_view name = "serial";
  static constexpr std::string_view description =
      "one process; with emulate_ranks, the steps that so many ranks would make";
  int emulate_ranks = 1;
  int groups = 1;  ///< of workers: gradients are summed within each first, then over groups
  int micro_batches = 1;
  Accumulate accumulate = Accumulate::unsharded;  ///< DDP adds as `unsharded` does
  Compression compression;                        ///< of each worker's gradients
  bool compressed_sums = true;                    ///< and of their sum, as DDP's
  Code parameter_compression = Code::none;        ///< of what passes run with, as FSDP's

  int workers_of_group() const { return emulate_ranks / groups; }
  /// True when the gradients of one micro-batch are summed apart from those of all.
  bool sums_micro_batches() const { return accumulate == Accumulate::sharded && micro_batches > 1; }

  /// Whether one rank does what the strategy is for: it may play several workers.
  bool works_on_one_rank() const { return true; }
};

/// Of section `strategy`, bound to `config`.
Keys keys_of(SerialConfig& config);
/// None: it shares out nothing.
std::vector<std::pair<std::string, SerialConfig>> alternatives(SerialConfig const& given);

}  // namespace stratagem
