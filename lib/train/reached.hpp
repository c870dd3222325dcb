#pragma once

#include <atomic>
#include <cstdint>

namespace stratagem {

/// How far a run is, for those who tell of it on other threads.
struct Reached {
  std::atomic<std::int64_t> step = 0;   ///< steps trained, as far as this rank knows
  std::atomic<std::int64_t> saved = 0;  ///< of these in the newest checkpoint; 0: there is none
};

}  // namespace stratagem
