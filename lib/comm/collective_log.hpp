#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <c10/core/ScalarType.h>

#include "base/error.hpp"
#include "base/hash/hash.hpp"

namespace stratagem {

/// A collective; all ranks of a group must call it with the same values. Reductions are sums.
struct CollectiveCall {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, barrier };
  Kind kind = Kind::barrier;
  at::ScalarType type = at::kByte;
  std::int64_t numel = 0;   ///< of one rank's part, if the parts of all ranks form the whole
  std::int64_t offset = 0;  ///< of the whole in its storage; distinguishes tensors of equal size
  int root = 0;             ///< of broadcast

  bool operator==(CollectiveCall const&) const = default;
  /// "all_reduce of 4096 Float at 32"
  std::string text() const;
};

/// The collectives that one rank has called: a fingerprint of all of them, and descriptions of the
/// last ones. One thread adds; any thread may read.
class CollectiveLog {
 public:
  static constexpr std::size_t kept = 32;

  void add(CollectiveCall const& call);
  /// Equal on ranks that have called the same collectives in the same order.
  std::uint64_t fingerprint() const;
  /// The most recent calls, the oldest first: one line each, "17 barrier", or "17@group barrier"
  /// of a group with a name.
  std::string text(std::string_view group = {}) const;

 private:
  mutable std::mutex mutex_;
  Hash hash_;
  std::int64_t count_ = 0;
  std::array<CollectiveCall, kept> last_;  ///< call n is at n % kept
};

/// The first collective that differs between ranks, as far as their logs still contain it; one log
/// per rank: "collective 17 is barrier on ranks 0, 2 and all_gather of 8 Long on rank 1", or
/// "collective 17 of group is ...". An empty log means unknown. A rank that has called fewer
/// collectives is only late.
std::optional<std::string> first_difference(std::span<std::string const> logs);

/// Throws Error(mismatch) with this text.
Error mismatch(std::string const& difference);

}  // namespace stratagem
