#include "strategy/ps/policy/pull_schedule.hpp"

#include <algorithm>
#include <utility>

namespace stratagem {

bool PullSchedule::next() {
  if (caches_) return reads_-- == 0;
  if (std::exchange(pulls_, false)) age_ = 0;
  ++age_;
  pulls_ = at_lag_ == 0 ? age_ == every_ : !knows_ || next_lag() >= static_cast<double>(at_lag_);
  return pulls_;
}

void PullSchedule::learn(std::int64_t lag) {
  auto const own = age_ - 1;
  others_ = std::max(0.0, static_cast<double>(lag - own) / static_cast<double>(age_));
  knows_ = true;
}

}  // namespace stratagem
