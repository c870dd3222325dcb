#pragma once

#include <vector>

#include "strategy/ps/policy/worker_liveness.hpp"
#include "strategy/ps/protocol/share.hpp"
#include "strategy/ps/server.hpp"

namespace stratagem {

/// Gradients of workers in the order in which they come, each treated as the policy has it. Workers
/// take their shares of the round from server 0. Chunks that have versions of their own are treated
/// as if each had a server of its own.
class AsyncPsServer final : public PsServer {
 public:
  AsyncPsServer(PsPlan plan, StrategyParts const& parts);

  void serve(Round const& round) override;

 private:
  /// What a worker has announced, or will.
  struct Push {
    at::Tensor message = empty_message();
    Work announced;
    bool is_expected = false;  ///< its message has not come
    PushHeader line;
    std::int64_t t_ready = 0;  ///< when it did [ns]
    at::Tensor end = empty_message();
    Work ended;  ///< where workers send an end
    Work answered, noted;
    std::size_t untreated = 0;  ///< domains
  };
  /// What becomes of one version domain.
  struct Timeline {
    ServerClock clock;
    double lr = 0;  ///< of the last push that was applied
    /// By worker: the gradient of its push, until it is treated, and the parameters that it was
    /// handed last.
    std::vector<std::vector<Work>> arriving, leaving;
  };

  void expect_line(int worker);
  /// Goes on with what has come from a worker; false when nothing has.
  bool attend(int worker);
  void read_line(int worker);
  void answer(int worker);
  /// What is known at a push's end.
  PushTrailer end_of(int worker);
  void apply(std::size_t domain, int worker);
  /// What its line tells of a push.
  trace::PsRecord record_of(int worker, VersionDomain const& domain) const;
  /// Hands parameters to those that may go on.
  void release(std::size_t domain);
  /// Tells how long the worker may read what it was handed now.
  void note_reads(std::size_t domain, int worker);
  /// Expects the worker's next push if it goes on everywhere.
  void go_on(int worker);
  /// Gates go on without those who are missing.
  void exclude_missing();
  void exclude(std::size_t domain, int worker);
  void tell_of_return(int worker);
  Push& of(int worker) { return pushes_[static_cast<std::size_t>(worker)]; }

  std::vector<Timeline> timelines_;  ///< by domain, as stores_
  WorkerLiveness liveness_;
  ShareSequence round_;
  std::function<Requests()> requests_;  ///< of this rank
  std::int64_t next_share_ = 0;         ///< of round_
  std::vector<Push> pushes_;            ///< by worker
};

}  // namespace stratagem
