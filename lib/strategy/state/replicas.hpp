#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "strategy/state/named_tensors.hpp"

namespace stratagem {

/// Hashes of tensors that several ranks hold alike, bit for bit: of each, and of all of them.
class ReplicaHashes {
 public:
  ReplicaHashes() = default;  ///< of nothing
  /// Of the memory of dense tensors, whatever their strides; those on a GPU are copied.
  explicit ReplicaHashes(NamedTensors const& replicas);

  bool empty() const { return tensors_.empty(); }
  /// 0 for nothing.
  std::uint64_t total() const;
  /// "<name> <hash>", a line per tensor.
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::uint64_t>> tensors_;
};

/// Which tensors differ, and on which ranks: "parameters/head.weight on rank 2". `tables`:
/// ReplicaHashes::text() by rank; empty for a rank that holds none. Where most ranks agree, the
/// others are named, else all of them: "head.weight between ranks 0, 1".
std::optional<std::string> divergence(std::span<std::string const> tables);

/// AgreedError(diverged) that says so, unless all ranks hold the same; for a rank that holds
/// nothing `own` is empty. Collective.
void require_equal_replicas(Communicator& communicator, ReplicaHashes const& own,
                            std::int64_t step);

/// Of what all ranks must have alike in a step: the collectives called so far and the replicas, as
/// far as they were hashed.
std::uint64_t fingerprint(CollectiveLog const& log, ReplicaHashes const& replicas);

/// Ends a step in which fingerprints differ, on all ranks: AgreedError(mismatch) or
/// AgreedError(diverged). Collective.
[[noreturn]] void refuse_difference(Communicator& communicator, ReplicaHashes const& own,
                                    std::int64_t step);

}  // namespace stratagem
