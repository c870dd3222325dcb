#include "strategy/ps/policy/server_policy.hpp"

#include <algorithm>
#include <limits>

#include "base/contract.hpp"

namespace stratagem {
namespace {

using Gate = ServerPolicy::Gate;

constexpr Treatment dropped{.apply = false, .weight = 0};

double weight_of(ServerPolicy::Weight weight, std::int64_t lag) {
  if (weight != ServerPolicy::Weight::inverse_lag) return 1;
  return 1.0 / static_cast<double>(std::max<std::int64_t>(lag, 1));
}

}  // namespace

std::string_view ServerPolicy::work() const {
  if (momentum != Momentum::shared) return "look_ahead";
  if (correction > 0 || weight == Weight::inverse_gap) return "corrected";
  return asynchronous() ? "each" : "sum";
}

std::vector<std::string> ServerPolicy::state_kinds() const {
  std::vector<std::string> kinds;
  if (correction_decay) kinds.emplace_back(gradient_square);
  if (weight == Weight::inverse_gap) kinds.emplace_back(step_square);
  return kinds;
}

Treatment treat(ServerPolicy const& policy, std::int64_t lag) {
  if (policy.gate == Gate::backup && lag > 0) return dropped;
  auto const weight = weight_of(policy.weight, lag);
  if (policy.lag_cap == 0 || lag <= policy.lag_cap) return {.weight = weight};
  if (policy.over_cap == ServerPolicy::OverCap::drop) return dropped;
  return {.weight = weight * static_cast<double>(policy.lag_cap) / static_cast<double>(lag)};
}

ServerClock::ServerClock(ServerPolicy const& policy, int workers)
    : policy_(policy),
      warm_(policy.warm_start > 0),
      unfinished_(workers),
      workers_(static_cast<std::size_t>(workers)) {
  expects(policy.asynchronous(), "a policy that treats pushes one by one");
}

ServerClock::Verdict ServerClock::push(int worker, Push const& push) {
  auto& self = of(worker);
  expects(computing(worker), "a worker pushes once it was released");
  auto const lag = this->lag(worker);
  bool const usable = !readmit(self) && push.usable;
  auto const [apply, weight] = usable ? treat(policy_, lag) : dropped;
  Verdict verdict{self.base, version_ + (apply ? 1 : 0), lag, apply, weight, false};
  ++self.pushes;
  self.dropped = !apply;
  warm_ = warm_ && push.step < policy_.warm_start;
  self.waiting = push.pulls;
  if (apply) {
    ++collected_;
    verdict.completes = complete();
  }
  return verdict;
}

bool ServerClock::finish(int worker) {
  expects(computing(worker), "a worker finishes once it was released");
  readmit(of(worker));
  of(worker).finished = true;
  --unfinished_;
  return complete();
}

bool ServerClock::exclude(int worker) {
  auto& self = of(worker);
  expects(computing(worker) && !self.excluded, "a worker is excluded while it computes, once");
  if (!waits_for_all() && policy_.gate != Gate::ssp) return false;
  self.excluded = true;
  ++excluded_;
  return complete();
}

bool ServerClock::readmit(Worker& worker) {
  if (!worker.excluded) return false;
  auto const others = slowest();
  if (unfinished_ > excluded_ && others > worker.progress())
    worker.head_start += others - worker.progress();
  worker.excluded = false;
  --excluded_;
  return true;
}

bool ServerClock::complete() {
  // Who has finished or is missing is not waited for, and at the end of a round nothing is left
  // over.
  auto const others = waits_for_all() || unfinished_ == 0
                          ? std::int64_t{unfinished_ - excluded_}
                          : std::numeric_limits<std::int64_t>::max();
  auto const wanted = warm_ ? static_cast<std::int64_t>(workers_.size()) : policy_.count;
  if (collected_ == 0 || collected_ < std::min(wanted, others)) return false;
  collected_ = 0;
  ++version_;
  return true;
}

std::vector<int> ServerClock::release() {
  std::vector<int> released;
  auto const least = policy_.gate == Gate::ssp ? slowest() : 0;
  for (int worker = 0; worker < static_cast<int>(workers_.size()); ++worker) {
    auto& self = of(worker);
    if (!self.waiting || !may_go_on(self, least)) continue;
    self.waiting = false;
    self.base = version_;
    released.push_back(worker);
  }
  return released;
}

bool ServerClock::may_go_on(Worker const& worker, std::int64_t slowest) const {
  // Its push is in an update, or will not be in any.
  if (waits_for_all()) return worker.dropped || worker.base < version_;
  if (policy_.gate == Gate::ssp) return worker.progress() - slowest <= policy_.staleness;
  return true;
}

std::int64_t ServerClock::cached_reads(int worker) const {
  auto const progress = of(worker).progress();
  return std::min(slowest(), progress) + policy_.staleness - progress;
}

void ServerClock::restart() {
  expects(collected_ == 0, "a round ends with its last update");
  for (auto& worker : workers_) worker = {.base = version_};
  unfinished_ = static_cast<int>(workers_.size());
}

std::int64_t ServerClock::slowest() const {
  auto least = std::numeric_limits<std::int64_t>::max();
  for (auto const& worker : workers_)
    if (!worker.finished && !worker.excluded) least = std::min(least, worker.progress());
  return least;
}

}  // namespace stratagem
