#pragma once

#include <cstdint>

namespace stratagem {

/// Section `checkpoint` of the configuration.
struct CheckpointConfig {
  double every_minutes = 30;     ///< 0 does not go by time
  std::int64_t every_steps = 0;  ///< 0 does not go by steps
  int keep = 2;                  ///< whole checkpoints; older ones are removed
  bool at_end = true;            ///< the last step is saved, too
  bool on_signal = true;         ///< USR1, and INT once, save and end the run; else they kill it
};

}  // namespace stratagem
