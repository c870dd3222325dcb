#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// What a live byte is for.
enum class MemoryCategory { parameters, gradients, optimizer, buffers, activations, workspace };

inline constexpr std::size_t memory_categories = 6;
inline constexpr std::array<std::string_view, memory_categories> memory_category_names{
    "parameters", "gradients", "optimizer", "buffers", "activations", "workspace"};

/// Tensor bytes by category.
struct MemoryUse {
  std::array<std::int64_t, memory_categories> bytes{};

  std::int64_t& operator[](MemoryCategory category) {
    return bytes[static_cast<std::size_t>(category)];
  }
  std::int64_t operator[](MemoryCategory category) const {
    return bytes[static_cast<std::size_t>(category)];
  }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (auto b : bytes) sum += b;
    return sum;
  }
};

/// Names the purpose of what this thread allocates while it lives. Scopes nest; outside of any,
/// tensors are workspace.
///
/// On the CPU every block remembers its category. On a GPU the caching allocator cannot tell, so a
/// scope of a lasting category (all but activations and workspace) books the growth it saw.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryCategory category, Device const& device = {});
  ~MemoryScope();
  MemoryScope(MemoryScope const&) = delete;
  MemoryScope& operator=(MemoryScope const&) = delete;

 private:
  MemoryCategory previous_;
  MemoryCategory category_;
  Device device_;
  std::int64_t allocated_before_ = 0;
};

/// Counts all CPU tensors from now on, makes Error(out_of_memory) of one that finds no room, and
/// keeps freed heap pages in the process (returning them to the kernel and faulting them in again
/// cost 3 to 17 % of a step). Call first thing in main.
void install_host_allocator();

/// Live tensor bytes; the CPU's only once install_host_allocator() was called.
MemoryUse live_memory(Device const& device);
/// Categories at the moment when their sum was largest since the last reset.
MemoryUse peak_memory(Device const& device);
void reset_peak_memory(Device const& device);

/// Bytes the allocator holds from the system, used or not; NaN when unknown.
double reserved_memory(Device const& device);

}  // namespace stratagem::gpu
