#include "strategy/ps/offline/cluster_clock.hpp"

#include <algorithm>
#include <cmath>

namespace stratagem {

ClusterClock::ClusterClock(ClusterModel const& model, int workers)
    : model_(model), random_(model.seed, "cluster"), passes_(static_cast<std::size_t>(workers)) {}

double ClusterClock::next_pass(int worker, double part) {
  auto const w = static_cast<std::size_t>(worker);
  auto const normal = to_normal(random_.block(passes_[w]++, static_cast<std::uint64_t>(worker)));
  auto const sigma = model_.jitter;
  auto const factor = worker == model_.slow_worker ? model_.slow : 1.0;
  auto const time = part * factor * std::exp(sigma * normal[0] - sigma * sigma / 2);
  computed_ += time;
  return time;
}

void ClusterClock::start(int worker, double part, bool pulls) {
  auto const ready = now_ + (pulls ? model_.message : 0);
  pushes_.push({ready + next_pass(worker, part) + model_.message, worker});
}

std::optional<int> ClusterClock::next() {
  if (pushes_.empty()) return std::nullopt;
  auto const [time, worker] = pushes_.top();
  pushes_.pop();
  treat(time, 1);
  return worker;
}

double ClusterClock::treat(double time, int pushes) {
  auto const duration = pushes * model_.update;
  busy_ += duration;
  return now_ = std::max(now_, time) + duration;
}

}  // namespace stratagem
