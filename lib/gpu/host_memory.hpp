#pragma once

#include "gpu/memory.hpp"

namespace stratagem::gpu {

// The CPU part of memory.hpp; both flavours need it.

MemoryUse host_live_memory();
MemoryUse host_peak_memory();
void reset_host_peak_memory();
double host_reserved_memory();

/// Sets the category of this thread's next allocations, and returns the previous one.
MemoryCategory exchange_host_category(MemoryCategory category);

}  // namespace stratagem::gpu
