#include "gpu/memory.hpp"

#include "gpu/host_memory.hpp"

namespace stratagem::gpu {

MemoryScope::MemoryScope(MemoryCategory category, Device const& device)
    : previous_(exchange_host_category(category)), category_(category), device_(device) {}

MemoryScope::~MemoryScope() {
  exchange_host_category(previous_);
}

MemoryUse live_memory(Device const&) {
  return host_live_memory();
}
MemoryUse peak_memory(Device const&) {
  return host_peak_memory();
}
void reset_peak_memory(Device const&) {
  reset_host_peak_memory();
}
void note_peak(std::int64_t, Device const&) {}
double reserved_memory(Device const&) {
  return host_reserved_memory();
}

}  // namespace stratagem::gpu
