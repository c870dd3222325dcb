#pragma once

#include <limits>
#include <memory>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// Measurements of the device; NaN if it does not provide them.
struct DeviceSample {
  double utilization = std::numeric_limits<double>::quiet_NaN();  ///< busy share of the device [0,
                                                                  ///< 1]; CPU: cores in use
  double memory_used = std::numeric_limits<double>::quiet_NaN();  ///< [B] on the device, all
                                                                  ///< processes; CPU: resident set
  double power = std::numeric_limits<double>::quiet_NaN();        ///< [W]
  double energy = std::numeric_limits<double>::quiet_NaN();  ///< [mJ] since the driver was loaded
  double clock = std::numeric_limits<double>::quiet_NaN();   ///< [MHz]
};

/// Reads the telemetry of one device: NVML on a GPU, the process's own counters on the CPU.
class Telemetry {
 public:
  virtual ~Telemetry() = default;
  virtual DeviceSample sample() = 0;
};

std::unique_ptr<Telemetry> make_telemetry(Device const& device);
std::unique_ptr<Telemetry> make_host_telemetry();

}  // namespace stratagem::gpu
