#pragma once

#include <cstdint>
#include <string>

#include <c10/core/Device.h>

namespace stratagem::gpu {

enum class DeviceKind { cpu, cuda };

/// Where the tensors of one rank live.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;  ///< among the visible GPUs; 0 for the CPU

  static Device of(c10::Device const& device) {
    return device.is_cuda() ? Device{DeviceKind::cuda, device.index()} : Device{};
  }
  c10::Device torch() const {
    return kind == DeviceKind::cpu
               ? c10::Device(c10::DeviceType::CPU)
               : c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index));
  }
};

/// What this build and this machine offer.
struct Availability {
  int count = 0;            ///< usable GPUs
  std::string reason;       ///< why there is none; empty when count > 0
  int runtime_version = 0;  ///< CUDA runtime, 13000 for 13.0; 0 in a CPU build
  int driver_version = 0;   ///< highest CUDA version the driver runs; 0 without a driver
};

Availability availability();

/// "NVIDIA A100-SXM4-80GB", or the processor's name.
std::string device_name(Device const& device);

/// Where the GPU is on its host (PCI bus id); does not depend on the launcher's numbering. Empty
/// for the CPU.
std::string device_address(Device const& device);

/// Makes `device` the GPU of this thread's CUDA calls. Nothing to do for the CPU.
void select(Device const& device);

/// Total memory of the device [B]; 0 when unknown.
std::int64_t total_memory(Device const& device);

/// Waits until everything submitted to the device is done.
void synchronize(Device const& device);

}  // namespace stratagem::gpu
