#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compress/compression.hpp"
#include "keys/key.hpp"

namespace stratagem {

/// Replicas whose gradients are averaged in buckets.
struct DdpConfig {
  static constexpr std::string_view name = "ddp";
  static constexpr std::string_view description =
      "replicas whose gradients are all-reduced in buckets behind the backward pass";
  double bucket_mb = 25;  ///< a bucket closes when it holds this much [MiB]
  bool overlap = true;    ///< communicate during the backward pass
  int micro_batches = 1;  ///< forward and backward passes per step
  Compression compression;

  /// Whether one rank does what the strategy is for: it may play several workers.
  bool works_on_one_rank() const { return false; }
};

/// Of section `strategy`, bound to `config`.
Keys keys_of(DdpConfig& config);
/// What `plan --compare` shows of it, by name; with what `given` says of more than one of them.
std::vector<std::pair<std::string, DdpConfig>> alternatives(DdpConfig const& given);

}  // namespace stratagem
