#include "optim/loss_scaler.hpp"

#include <algorithm>

namespace stratagem {

bool LossScaler::update(bool overflowed) {
  if (overflowed) {
    good_steps_ = 0;
    if (scale_ <= least_scale) return false;
    scale_ = std::max(scale_ / 2, least_scale);
    return true;
  }
  if (++good_steps_ == growth_interval) {
    good_steps_ = 0;
    scale_ = std::min(scale_ * 2, largest_scale);
  }
  return true;
}

}  // namespace stratagem
