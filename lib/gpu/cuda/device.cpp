#include "gpu/device.hpp"

#include <array>

#include <unistd.h>

#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "gpu/cuda/check.hpp"

namespace stratagem::gpu {

void check(cudaError_t code, char const* call, std::source_location where) {
  if (code == cudaSuccess) return;
  throw Error(code == cudaErrorMemoryAllocation ? ExitCode::out_of_memory : ExitCode::environment,
              str(call, " failed at ", where.file_name(), ":", where.line()),
              cudaGetErrorString(code));
}

Availability availability() {
  Availability found;
  check(cudaRuntimeGetVersion(&found.runtime_version), "cudaRuntimeGetVersion");
  check(cudaDriverGetVersion(&found.driver_version), "cudaDriverGetVersion");
  auto const code = cudaGetDeviceCount(&found.count);
  if (code != cudaSuccess) {
    found.count = 0;
    cudaGetLastError();  // the failure is handled here; clears it for later calls
    found.reason =
        found.driver_version == 0 ? "no NVIDIA driver on this machine" : cudaGetErrorString(code);
  } else if (found.count == 0) {
    found.reason = "the driver shows no GPU";
  }
  return found;
}

std::string device_name(Device const& device) {
  if (device.kind == DeviceKind::cpu) return processor_name();
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  return properties.name;
}

std::string device_address(Device const& device) {
  if (device.kind == DeviceKind::cpu) return {};
  std::array<char, 32> address{};
  check(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device.index),
        "cudaDeviceGetPCIBusId");
  return address.data();
}

void select(Device const& device) {
  if (device.kind == DeviceKind::cuda) check(cudaSetDevice(device.index), "cudaSetDevice");
}

std::int64_t total_memory(Device const& device) {
  if (device.kind == DeviceKind::cpu)
    return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  select(device);
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(total);
}

void synchronize(Device const& device) {
  if (device.kind == DeviceKind::cpu) return;
  select(device);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace stratagem::gpu
