#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <c10/core/ScalarType.h>

#include "base/error.hpp"
#include "base/hash/hash.hpp"

namespace stratagem {

/// A collective as all ranks of a group have to call it. What is reduced is summed.
struct CollectiveCall {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, barrier };
  Kind kind = Kind::barrier;
  at::ScalarType type = at::kByte;
  std::int64_t numel = 0;   ///< of one rank's part where the parts of all make a whole
  std::int64_t offset = 0;  ///< of the whole in its storage: tells apart what is equally large
  int root = 0;             ///< of broadcast

  bool operator==(CollectiveCall const&) const = default;
  /// "all_reduce of 4096 Float at 32"
  std::string text() const;
};

/// Which collectives one rank has called: a fingerprint of all of them, and the last ones by name.
/// One thread adds; any may read.
class CollectiveLog {
 public:
  static constexpr std::size_t kept = 32;

  void add(CollectiveCall const& call);
  /// Equal where ranks have called the same, in the same order.
  std::uint64_t fingerprint() const;
  /// The calls that are kept, the oldest first: a line each, with its number.
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  Hash hash_;
  std::int64_t count_ = 0;
  std::array<CollectiveCall, kept> last_;  ///< call n is at n % kept
};

/// The first collective that ranks have called differently, as far as their logs, of which there is
/// one per rank, still tell: "collective 17 is barrier on ranks 0, 2 and all_gather of 8 Long on
/// rank 1". An empty log is one that is not known. A rank that has called fewer is only late.
std::optional<std::string> first_difference(std::span<std::string const> logs);

/// Error(mismatch) that says so.
Error mismatch(std::string const& difference);

}  // namespace stratagem
