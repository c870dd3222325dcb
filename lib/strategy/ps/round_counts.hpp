#pragma once

#include <string>

#include "comm/communicator.hpp"
#include "strategy/ps/policy/server_policy.hpp"
#include "trace/lag_counts.hpp"

namespace stratagem {

/// What servers did in one or more rounds.
struct RoundCounts {
  LagCounts lags;
  std::int64_t dropped = 0;
  std::int64_t overflowed = 0;  ///< of these: under the loss scale
  std::int64_t busy_ns = 0;     ///< servers computed
  std::int64_t whole_ns = 0;    ///< from the begin of a round to its end, of each server

  /// Those of all ranks together; a lag beyond 1,023 counts as 1,023. Collective.
  RoundCounts joined(Communicator& communicator) const;
};

/// "lag mean 1.02, p50 1, p95 2, p99 3, max 5; dropped 2 of 40 with 5.0 % of the samples,
/// overflowed 1; servers 12 % busy": lags where a policy has any, drops where there were some.
std::string describe(RoundCounts const& counts, ServerPolicy const& policy);

}  // namespace stratagem
