#include "strategy/ps/server_policy.hpp"

#include <algorithm>
#include <limits>

#include "base/contract.hpp"

namespace stratagem {

Treatment treat(ServerPolicy const& policy, std::int64_t lag) {
  if (policy.lag_cap > 0 && lag > policy.lag_cap) return {.apply = false, .weight = 0};
  if (policy.weight == ServerPolicy::Weight::inverse_lag)
    return {.weight = 1.0 / static_cast<double>(std::max<std::int64_t>(lag, 1))};
  return {};
}

ServerClock::ServerClock(ServerPolicy const& policy, int workers)
    : policy_(policy), workers_(static_cast<std::size_t>(workers)) {
  expects(policy.asynchronous(), "a policy that treats pushes one by one");
}

ServerClock::Verdict ServerClock::push(int worker) {
  auto& self = of(worker);
  expects(!self.waiting && !self.finished, "a worker pushes once it was released");
  auto const lag = version_ - self.base;
  auto const [apply, weight] = treat(policy_, lag);
  if (apply) ++version_;
  ++self.pushes;
  self.waiting = true;
  return {self.base, version_, lag, apply, weight};
}

void ServerClock::finish(int worker) {
  auto& self = of(worker);
  expects(!self.waiting && !self.finished, "a worker finishes once it was released");
  self.finished = true;
}

std::vector<int> ServerClock::release() {
  std::vector<int> released;
  auto const least = policy_.gate == ServerPolicy::Gate::ssp ? slowest() : 0;
  for (int worker = 0; worker < static_cast<int>(workers_.size()); ++worker) {
    auto& self = of(worker);
    if (!self.waiting) continue;
    if (policy_.gate == ServerPolicy::Gate::ssp && self.pushes - least > policy_.staleness)
      continue;
    self.waiting = false;
    self.base = version_;
    released.push_back(worker);
  }
  return released;
}

bool ServerClock::all_finished() const {
  return std::ranges::all_of(workers_, &Worker::finished);
}

void ServerClock::restart() {
  for (auto& worker : workers_) worker = {.base = version_};
}

std::int64_t ServerClock::slowest() const {
  auto least = std::numeric_limits<std::int64_t>::max();
  for (auto const& worker : workers_)
    if (!worker.finished) least = std::min(least, worker.pushes);
  return least;
}

}  // namespace stratagem
