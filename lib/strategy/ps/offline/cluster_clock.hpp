#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "base/random.hpp"
#include "strategy/offline.hpp"

namespace stratagem {

/// Tells in which order workers' pushes reach the server: a seeded discrete-event clock. The n-th
/// pass of a worker takes the same time under every policy.
class ClusterClock {
 public:
  ClusterClock(ClusterModel const& model, int workers);

  double now() const { return now_; }
  /// How long a worker's next pass takes; `part`: of a share.
  double next_pass(int worker, double part);
  /// The server works in `pushes` that have all come at `time`; returns when it has.
  double treat(double time, int pushes);

  /// The worker goes on now, and will push; `pulls`: once parameters have come to it.
  void start(int worker, double part, bool pulls);
  /// The worker whose push the server has worked in next: it is that time now. Nothing when nobody
  /// is under way.
  std::optional<int> next();

  /// Sum over workers of the time they have computed.
  double computed() const { return computed_; }
  /// Time the server was busy.
  double busy() const { return busy_; }
  ClusterModel const& model() const { return model_; }

 private:
  struct Event {
    double time = 0;
    int worker = 0;
    /// Of two at the same time the lower worker comes first.
    bool operator<(Event const& other) const {
      return time != other.time ? time > other.time : worker > other.worker;
    }
  };

  ClusterModel model_;
  CounterRandom random_;
  double now_ = 0, computed_ = 0, busy_ = 0;
  std::vector<std::uint64_t> passes_;  ///< by worker
  std::priority_queue<Event> pushes_;  ///< by the time they reach the server
};

}  // namespace stratagem
