#include "gpu/device.hpp"

#include <unistd.h>

#include "base/system.hpp"

namespace stratagem::gpu {

Availability availability() {
  return {.reason = "this build is without CUDA"};
}

std::string device_name(Device const&) {
  return processor_name();
}

std::string device_address(Device const&) {
  return {};
}

void select(Device const&) {}

std::int64_t total_memory(Device const&) {
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

void synchronize(Device const&) {}

}  // namespace stratagem::gpu
