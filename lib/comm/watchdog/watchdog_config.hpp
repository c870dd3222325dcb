#pragma once

namespace stratagem {

/// Section `watchdog` of the configuration.
struct WatchdogConfig {
  bool enabled = true;  ///< of runs of several ranks
  double floor_s = 5;   ///< no rank counts as hanging sooner
  double factor =
      5;  ///< times the 99th percentile of a phase, before a rank counts as hanging in it
};

}  // namespace stratagem
