#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/sampler.hpp"

namespace stratagem {

/// All shares of a round of asynchronous training, steps [first, end): numbered by step, then by
/// place in the batch. Whoever is ready takes the next, so that a slow worker does fewer. Each
/// worker begins with two: one to work on, one to prepare meanwhile.
class ShareSequence {
 public:
  ShareSequence() = default;
  /// Every global batch is cut into workers x pushes shares.
  ShareSequence(std::int64_t first_step, std::int64_t end_step, int workers, int pushes)
      : first_step_(first_step),
        count_((end_step - first_step) * workers * pushes),
        workers_(workers),
        parts_(workers * pushes) {}

  std::int64_t count() const { return count_; }
  Share at(std::int64_t number) const {
    return {first_step_ + number / parts_, {static_cast<int>(number % parts_), parts_}};
  }
  /// What a worker begins with.
  std::vector<Share> first_of(int worker) const {
    std::vector<Share> shares;
    for (auto number : {std::int64_t{worker}, std::int64_t{worker} + workers_})
      if (number < count_) shares.push_back(at(number));
    return shares;
  }
  /// The first number that nobody begins with.
  std::int64_t dealt_at_first() const { return std::min<std::int64_t>(2 * workers_, count_); }

 private:
  std::int64_t first_step_ = 0;
  std::int64_t count_ = 0;
  int workers_ = 1;
  int parts_ = 1;  ///< of a global batch
};

}  // namespace stratagem
