#include "strategy/ps/policy/worker_liveness.hpp"

#include <algorithm>
#include <utility>

#include "base/arithmetic.hpp"

namespace stratagem {

using std::chrono::nanoseconds;

WorkerLiveness::WorkerLiveness(WatchdogConfig const& config, int workers)
    : config_(config), workers_(static_cast<std::size_t>(workers)) {}

std::vector<int> WorkerLiveness::look(nanoseconds now) {
  seen_ += std::min<nanoseconds>(now - std::exchange(last_look_, now).value_or(now), longest_look);
  std::vector<int> missing;
  if (!config_.enabled) return missing;
  for (int worker = 0; worker < static_cast<int>(workers_.size()); ++worker) {
    auto& self = of(worker);
    if (!self.expected || self.missing || !self.took || seen_ - self.since <= limit_of(self))
      continue;
    self.missing = true;
    missing.push_back(worker);
  }
  return missing;
}

void WorkerLiveness::expect(int worker) {
  of(worker).expected = true;
  of(worker).since = seen_;
}

bool WorkerLiveness::came(int worker) {
  auto& self = of(worker);
  if (!std::exchange(self.missing, false)) return false;
  self.since = seen_ - self.took.value_or(nanoseconds(0));  // the rest may take its time
  return true;
}

bool WorkerLiveness::arrived(int worker) {
  of(worker).took = seen_ - of(worker).since;
  return finished(worker);
}

bool WorkerLiveness::finished(int worker) {
  of(worker).expected = false;
  return std::exchange(of(worker).missing, false);
}

nanoseconds WorkerLiveness::limit_of(Worker const& worker) const {
  auto const usual_ns = config_.factor * static_cast<double>(worker.took->count());
  return nanoseconds(saturated(std::max(config_.floor_s * 1e9, usual_ns)));
}

}  // namespace stratagem
