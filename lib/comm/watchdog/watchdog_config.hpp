#pragma once

namespace stratagem {

/// Section `watchdog` of the configuration.
struct WatchdogConfig {
  bool enabled = true;  ///< of runs of several ranks
  double floor_s = 5;   ///< no rank is found to hang sooner
  double factor =
      5;  ///< times the 99th percentile of a phase, before a rank is found to hang in it
};

}  // namespace stratagem
