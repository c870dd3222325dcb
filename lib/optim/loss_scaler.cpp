#include "optim/loss_scaler.hpp"

#include <algorithm>

namespace stratagem {

bool LossScaler::update(bool overflowed) {
  auto& [scale, good_steps] = state_;
  if (overflowed) {
    good_steps = 0;
    if (scale <= least_scale) return false;
    scale = std::max(scale / 2, least_scale);
    return true;
  }
  if (++good_steps == growth_interval) {
    good_steps = 0;
    scale = std::min(scale * 2, largest_scale);
  }
  return true;
}

}  // namespace stratagem
