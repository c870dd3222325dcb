#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "comm/watchdog/failure_detector.hpp"

namespace stratagem {

/// Slots whose steps take much more computing time than those of the others.
std::vector<std::size_t> slow_among(std::span<Glance const> glances);

/// Which ranks are slow for long. Another job on the machine makes now this rank slow and then that
/// one; a rank with a fault of its own stays slow.
class SlowRanks {
 public:
  explicit SlowRanks(std::size_t slots) : slots_(slots) {}

  /// A slot is found, once, when it was slow in at least `share` of the looks of the last `lasts`.
  /// `elapsed`: since the previous look; after a gap, all begin again.
  std::vector<std::size_t> look(std::chrono::nanoseconds elapsed, std::span<Glance const> glances);

  static constexpr std::chrono::seconds lasts{15};
  static constexpr double share = 0.9;

 private:
  struct Stretch {
    std::chrono::nanoseconds length{}, slow{};
    bool found = false;
  };

  std::vector<Stretch> slots_;
};

}  // namespace stratagem
