#pragma once

#include <cstdint>
#include <vector>

namespace stratagem {

/// How a server treats what workers push: a plain value.
struct ServerPolicy {
  /// When a worker that has pushed may go on.
  enum class Gate {
    none,  ///< at once
    bsp,   ///< when all have pushed and their mean was applied
    ssp,   ///< when it is at most `staleness` pushes ahead of the slowest
  };
  /// Whose gradients a momentum vector sums up.
  enum class Momentum {
    shared,      ///< everybody's
    per_worker,  ///< one worker's
    look_ahead,  ///< one worker's, and workers get the parameters where all momenta lead next
  };
  /// What a gradient of some lag counts.
  enum class Weight {
    one,
    inverse_lag,  ///< 1 / lag, from lag 1 on (Zhang et al., IJCAI 2016)
  };

  Gate gate = Gate::none;
  std::int64_t staleness = 0;
  std::int64_t lag_cap = 0;  ///< a gradient with more lag is dropped; 0 drops none
  Weight weight = Weight::one;
  double correction = 0;  ///< lambda of g + lambda g g (p - p_base); 0 is none
  Momentum momentum = Momentum::shared;

  /// True when each push is an update of its own.
  bool asynchronous() const { return gate != Gate::bsp; }
};

/// What becomes of a push whose gradient is `lag` versions old.
struct Treatment {
  bool apply = true;
  double weight = 1;
};
Treatment treat(ServerPolicy const& policy, std::int64_t lag);

/// Who pushed how often, and which version everybody computes with: a policy's state machine on
/// numbers alone. Only for asynchronous policies. A lag is the number of updates between the
/// version a gradient was computed with and the one it is applied to.
class ServerClock {
 public:
  ServerClock(ServerPolicy const& policy, int workers);

  /// Updates so far.
  std::int64_t version() const { return version_; }

  struct Verdict {
    std::int64_t base_version = 0;     ///< that the gradient was computed with
    std::int64_t applied_version = 0;  ///< after this push
    std::int64_t lag = 0;
    bool applied = true;
    double weight = 1;
  };
  /// A push of `worker` is complete; from now on the worker waits.
  Verdict push(int worker);
  /// The worker makes no more pushes in this round.
  void finish(int worker);
  /// The workers that wait and may go on now, with the present version.
  std::vector<int> release();
  bool all_finished() const;
  /// True for a worker that was released and has neither pushed nor finished.
  bool computing(int worker) const { return !of(worker).waiting && !of(worker).finished; }
  /// A new round: every worker has the present version and goes on.
  void restart();

  /// Pushes of a worker in this round.
  std::int64_t pushes(int worker) const { return of(worker).pushes; }

 private:
  struct Worker {
    std::int64_t pushes = 0;
    std::int64_t base = 0;
    bool waiting = false;
    bool finished = false;
  };
  Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  Worker const& of(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  /// Fewest pushes among the workers that have not finished.
  std::int64_t slowest() const;

  ServerPolicy policy_;
  std::int64_t version_ = 0;
  std::vector<Worker> workers_;
};

}  // namespace stratagem
