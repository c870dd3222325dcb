#pragma once

namespace stratagem::trace {

/// Section `trace` of the configuration.
struct TraceConfig {
  int spans_every = 50;         ///< spans and memory in every so many steps; 0: never
  double device_sample_hz = 2;  ///< how often the device is sampled; 0: never
};

}  // namespace stratagem::trace
