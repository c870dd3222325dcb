#pragma once

#include <vector>

#include "strategy/ps/attendance.hpp"
#include "strategy/ps/server.hpp"
#include "strategy/ps/share.hpp"

namespace stratagem {

/// Gradients of workers in the order in which they come, each treated as the policy has it. Workers
/// take their shares of the round from server 0.
class AsyncPsServer final : public PsServer {
 public:
  AsyncPsServer(PsConfig const& config, StrategyParts const& parts);

  void begin_round(std::int64_t first_step, std::int64_t end_step) override;
  void drain() override;
  std::map<std::string, double> counters() const override;

 private:
  /// A worker's push under way.
  struct Inbox {
    at::Tensor message = empty_message();
    Work announced;
    PsLine line;
    /// Of own chunks, then of the end where workers send one; none until the line is there.
    std::vector<Work> gradients;
    at::Tensor end = empty_message();
    std::int64_t t_ready = 0;  ///< when the line came [ns]
    std::vector<Work> sends;   ///< the answer, and the parameters it was handed last
  };

  void expect_line(int worker);
  /// Goes on with what has come from a worker; false when nothing has.
  bool attend(int worker);
  void answer(int worker);
  void apply(int worker);
  /// The store's part in what the clock decided.
  void treat(int worker, ServerClock::Verdict const& verdict, double factor);
  /// Gates go on without those who are missing.
  void exclude_missing();
  void tell_of_return(int worker);
  /// Hands parameters to those that may go on.
  void release();
  int pushes_under_way() const;
  Inbox& of(int worker) { return inboxes_[static_cast<std::size_t>(worker)]; }

  ServerClock clock_;
  Attendance attendance_;
  ShareSequence round_;
  std::int64_t next_share_ = 0;  ///< of round_
  double lr_ = 0;                ///< of the last push that was applied
  std::vector<Inbox> inboxes_;   ///< by worker
};

}  // namespace stratagem
