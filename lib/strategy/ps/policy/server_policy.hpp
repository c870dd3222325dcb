#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// How a server treats what workers push: a plain value.
struct ServerPolicy {
  /// When an update is made, and when a worker that has pushed may go on.
  enum class Gate {
    none,      ///< each push is an update, and its worker goes on at once
    bsp,       ///< all have pushed; their mean is the update
    ssp,       ///< each push is an update; its worker is at most `staleness` ahead of the slowest
    softsync,  ///< `count` pushes, whoever's, are an update; workers go on at once
    backup,    ///< the first `count` pushes to a version are; who comes later is dropped
  };
  /// Whose gradients a momentum vector sums up.
  enum class Momentum {
    shared,      ///< everybody's
    per_worker,  ///< one worker's
    look_ahead,  ///< one worker's, and workers get the parameters where all momenta lead next
  };
  /// What a gradient counts.
  enum class Weight {
    one,
    inverse_lag,  ///< 1 / lag, from lag 1 on (Zhang et al., IJCAI 2016)
    inverse_gap,  ///< 1 / gap, each of its elements by itself (Barkai et al., ICLR 2020)
  };
  /// What becomes of a gradient beyond the lag cap.
  enum class OverCap {
    drop,
    attenuate,  ///< it counts cap / lag (Koloskova et al., NeurIPS 2022)
  };
  /// What has one version.
  enum class Pulls {
    consistent,  ///< all that a server holds: a pull gets one version of it
    chunkwise,   ///< each chunk: it is updated and comes back as soon as its gradient is there
  };

  Gate gate = Gate::none;
  std::int64_t staleness = 0;
  std::int64_t count = 1;
  std::int64_t lag_cap = 0;  ///< 0 is no cap
  OverCap over_cap = OverCap::drop;
  Weight weight = Weight::one;
  double correction = 0;  ///< lambda of g + lambda g g (p - p_base); 0 is none
  /// Lambda is divided by the root of a running mean of g g, which has this decay; else constant.
  std::optional<double> correction_decay;
  Momentum momentum = Momentum::shared;
  int delay = 0;       ///< of bsp: versions by which workers compute behind the newest
  int pushes = 1;      ///< that a worker makes of its share of a global batch
  int pull_every = 1;  ///< pushes from one pull of the parameters to the next
  /// Not 0: in place of pull_every, a pull before a gradient would be of so many versions ago.
  std::int64_t pull_at_lag = 0;
  /// Of ssp: a worker pulls only when what it has lacks more than `staleness` steps of the slowest,
  /// and applies its own updates to it meanwhile.
  bool cached_reads = false;
  Pulls pulls = Pulls::consistent;
  /// Of the asynchronous: in the first so many steps an update is the mean of all workers' pushes.
  std::int64_t warm_start = 0;

  /// True when workers take shares of the work on their own.
  bool asynchronous() const { return gate != Gate::bsp; }
  /// True when an update may take several pushes that come at different times.
  bool collects() const { return gate == Gate::softsync || gate == Gate::backup || warm_start > 0; }
  /// True when a worker pulls after each of its pushes.
  bool always_pulls() const { return pull_every == 1 && pull_at_lag == 0 && !cached_reads; }
  /// What a server has to do for a push: one of server_works(), or the nearest to it.
  std::string_view work() const;

  static constexpr char const* gradient_square = "gradient_square";
  /// What a server may keep for each parameter beside the optimizer's state.
  static constexpr char const* step_square = "step_square";
  static constexpr std::array kinds{gradient_square, step_square};
  /// What it keeps.
  std::vector<std::string> state_kinds() const;
};

/// What becomes of a push as a whole.
struct Treatment {
  bool apply = true;
  double weight = 1;
};
/// `lag`: versions by which its gradient is old.
Treatment treat(ServerPolicy const& policy, std::int64_t lag);

/// Who pushed how often, and which version everybody computes with: a policy's state machine on
/// numbers alone. Only for asynchronous policies. A lag is the number of updates between the
/// version a gradient was computed with and the one it is applied to.
class ServerClock {
 public:
  ServerClock(ServerPolicy const& policy, int workers);

  /// Updates so far.
  std::int64_t version() const { return version_; }

  struct Push {
    std::int64_t step = 0;  ///< of the share that the gradient is of
    bool usable = true;     ///< false: it overflowed, and is dropped
    bool pulls = true;      ///< thereupon
  };
  struct Verdict {
    std::int64_t base_version = 0;     ///< that the gradient was computed with
    std::int64_t applied_version = 0;  ///< the first that has it; of one that is dropped, the last
    std::int64_t lag = 0;
    bool applied = true;
    double weight = 1;
    bool completes = true;  ///< with it an update is complete, and made
  };
  /// A push of `worker` is complete. If the worker pulls, it waits from now on.
  Verdict push(int worker, Push const& push);
  /// The worker makes no more pushes in this round. True when those that were waiting for it are
  /// an update now.
  bool finish(int worker);
  /// The worker is missing: gates do not wait for it until it pushes or finishes. What it pushes
  /// then, from parameters of long ago, is dropped, and it counts as far as the slowest of the
  /// others. Where no gate waits for workers nothing changes. True as of finish().
  bool exclude(int worker);
  bool excluded(int worker) const { return of(worker).excluded; }
  /// The workers that wait and may go on now, with the present version.
  std::vector<int> release();
  bool all_finished() const { return unfinished_ == 0; }
  /// True for a worker that goes on: it has neither to wait nor finished.
  bool computing(int worker) const { return !of(worker).waiting && !of(worker).finished; }
  /// Versions by which what the worker computes with is old.
  std::int64_t lag(int worker) const { return version_ - of(worker).base; }
  /// Of gate ssp: how many gradients a worker that goes on now may compute after the next one with
  /// what it has, so that each lacks at most `staleness` steps of the slowest.
  std::int64_t cached_reads(int worker) const;
  /// A new round: every worker has the present version and goes on.
  void restart();

  /// Pushes of a worker in this round.
  std::int64_t pushes(int worker) const { return of(worker).pushes; }

 private:
  struct Worker {
    std::int64_t pushes = 0;
    std::int64_t base = 0;
    bool waiting = false;
    bool dropped = false;  ///< its last push
    bool finished = false;
    bool excluded = false;
    std::int64_t head_start = 0;  ///< pushes of others while it was

    std::int64_t progress() const { return pushes + head_start; }
  };
  Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  Worker const& of(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  /// Least progress among the workers that gates wait for.
  std::int64_t slowest() const;
  bool may_go_on(Worker const& worker, std::int64_t slowest) const;
  /// Whether an update waits for everybody, and everybody for it.
  bool waits_for_all() const { return warm_ || policy_.gate == ServerPolicy::Gate::backup; }
  /// Gates wait for it again; true when they did not.
  bool readmit(Worker& worker);
  /// Makes an update of what was collected if that is enough.
  bool complete();

  ServerPolicy policy_;
  std::int64_t version_ = 0;
  bool warm_;                   ///< no push was of a step beyond the warm start
  std::int64_t collected_ = 0;  ///< pushes that wait for others to become an update
  int unfinished_;
  int excluded_ = 0;  ///< of them
  std::vector<Worker> workers_;
};

}  // namespace stratagem
