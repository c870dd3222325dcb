#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// The purpose of a live byte.
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

/// Sets the purpose of this thread's allocations while it lives. Scopes nest; outside of any scope,
/// tensors are workspace.
///
/// On the CPU, every block remembers its category. On a GPU, the caching allocator cannot do that:
/// a scope of a lasting category (all except activations and workspace) counts how much memory grew
/// while it lived.
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

/// From now on, counts all CPU tensors, throws Error(out_of_memory) if there is no room for one,
/// and keeps freed heap pages in the process (returning them to the kernel and faulting them in
/// again costs 3 to 17 % of a step). Must be called first in main.
void install_host_allocator();

/// Live tensor bytes. On the CPU, only those allocated after install_host_allocator().
MemoryUse live_memory(Device const& device);
/// The categories at the moment when their sum was largest, since the last reset.
MemoryUse peak_memory(Device const& device);
void reset_peak_memory(Device const& device);
/// On a GPU: so many bytes are live for a while, though nobody allocates them. A graph runs in
/// memory that was allocated while it was captured.
void note_peak(std::int64_t total, Device const& device);

/// Bytes that the allocator has taken from the system, used or not; NaN if unknown.
double reserved_memory(Device const& device);

}  // namespace stratagem::gpu
