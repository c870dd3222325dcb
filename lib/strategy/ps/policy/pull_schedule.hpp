#pragma once

#include <cstdint>

#include "strategy/ps/policy/server_policy.hpp"

namespace stratagem {

/// After which of its pushes an asynchronous worker pulls: after every n-th; or, by the lags that
/// it is told of, before a gradient would be too old; or when it has used up the reads that its
/// parameters came with. The parameters that a round begins with count as pulled.
class PullSchedule {
 public:
  explicit PullSchedule(ServerPolicy const& policy)
      : every_(policy.pull_every),
        at_lag_(policy.pull_at_lag),
        caches_(policy.cached_reads),
        staleness_(policy.staleness),
        reads_(staleness_) {}

  void begin_round() {
    age_ = 0;
    reads_ = staleness_;
  }
  /// Whether it pulls after the push that it makes now.
  bool next();
  /// The lag of that push.
  void learn(std::int64_t lag);
  /// Parameters have come with so many ServerClock::cached_reads().
  void allow(std::int64_t reads) { reads_ = reads; }

 private:
  /// Versions by which the gradient after the present one would be old without a pull: as many
  /// updates of others per push as were seen last, and its own pushes.
  double next_lag() const {
    return others_ * static_cast<double>(age_ + 1) + static_cast<double>(age_);
  }

  std::int64_t every_;
  std::int64_t at_lag_;  ///< 0: every_ decides
  bool caches_;          ///< reads_ decides
  std::int64_t staleness_, reads_;
  std::int64_t age_ = 0;  ///< pushes since the last pull, the present one included
  bool pulls_ = false;    ///< after the present push
  bool knows_ = false;    ///< how fast versions come
  double others_ = 0;     ///< updates of others during one of its passes
};

}  // namespace stratagem
