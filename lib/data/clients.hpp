#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/client_config.hpp"
#include "data/sampler.hpp"

namespace stratagem {

/// Whose a training sample is: every sample is one client's, and every client has some.
class ClientSplit {
 public:
  /// Depends on seed and labels alone. `labels`: int64 [samples]; undefined for Split::iid, which
  /// does not look at them. Error(usage) where a client would have no sample.
  ClientSplit(ClientConfig const& config, std::uint64_t seed, std::int64_t samples,
              at::Tensor const& labels);

  int clients() const { return static_cast<int>(parts_.size()); }
  /// Ascending.
  std::span<std::int64_t const> of(int client) const {
    return parts_[static_cast<std::size_t>(client)];
  }
  /// The most samples that so many clients have together.
  std::int64_t most_samples(int clients) const;

  /// Over all clients.
  struct Spread {
    std::int64_t least = 0, median = 0, most = 0;
  };
  Spread samples() const;
  /// Different labels of a client; all 0 where the split did not look at them.
  Spread labels() const;
  std::uint64_t hash() const;

 private:
  std::vector<std::vector<std::int64_t>> parts_;
  std::vector<std::int64_t> labels_;  ///< how many different ones, by client
};

/// Which clients train in a round, and on which of their samples. Every number depends on seed,
/// round and client alone: any rank computes any of them.
class ClientRounds {
 public:
  ClientRounds(ClientConfig const& config, std::uint64_t seed, ClientSplit split)
      : config_(config), seed_(seed), split_(std::move(split)) {}

  ClientSplit const& split() const { return split_; }
  /// config.per_round different ones, in the order of their parts of the global batch.
  std::vector<DrawnClient> drawn(std::int64_t round) const;
  /// The samples in `slots` of the round's global batch, which are those of whole clients: each
  /// goes through its own in random order, and begins again in another one where it has too few.
  std::vector<std::int64_t> samples(std::int64_t round, IndexRange const& slots,
                                    std::int64_t global_batch) const;

 private:
  ClientConfig config_;
  std::uint64_t seed_;
  ClientSplit split_;
};

}  // namespace stratagem
