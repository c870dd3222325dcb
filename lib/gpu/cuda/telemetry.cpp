#include "gpu/telemetry.hpp"

#include <array>

#include "gpu/cuda/check.hpp"
#include "gpu/cuda/nvml.hpp"

namespace stratagem::gpu {
namespace {

/// For a GPU whose driver has no NVML: all values stay unknown.
class NoTelemetry final : public Telemetry {
 public:
  DeviceSample sample() override { return {}; }
};

}  // namespace

std::unique_ptr<Telemetry> make_telemetry(Device const& device) {
  if (device.kind == DeviceKind::cpu) return make_host_telemetry();
  std::array<char, 32> bus_id{};
  check(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device.index),
        "cudaDeviceGetPCIBusId");
  if (auto telemetry = make_nvml_telemetry(bus_id.data())) return telemetry;
  return std::make_unique<NoTelemetry>();
}

}  // namespace stratagem::gpu
