#pragma once

#include <memory>
#include <string>

#include "gpu/telemetry.hpp"

namespace stratagem::gpu {

/// Telemetry of the GPU at a PCI address ("0000:07:00.0"), from the driver's NVML. NVML is loaded
/// at run time, so that the program starts without a driver. Null if there is none.
std::unique_ptr<Telemetry> make_nvml_telemetry(std::string const& pci_bus_id);

}  // namespace stratagem::gpu
