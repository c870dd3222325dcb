#include "gpu/memory.hpp"

#include <algorithm>

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "gpu/host_memory.hpp"

namespace stratagem::gpu {
namespace {

using c10::CachingDeviceAllocator::Stat;

/// The allocator does not know the device before LibTorch first uses it.
Stat allocated(Device const& device) {
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  auto const stats =
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device.index));
  return stats
      .allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

/// Bytes of the lasting categories, as scopes counted them. One per process, like the allocator.
MemoryUse& ledger() {
  static MemoryUse booked;
  return booked;
}

/// The largest of note_peak() since the last reset.
std::int64_t& noted_peak() {
  static std::int64_t noted = 0;
  return noted;
}

bool lasting(MemoryCategory category) {
  return category != MemoryCategory::activations && category != MemoryCategory::workspace;
}

/// Whatever the lasting categories do not explain counts as activations, including other memory of
/// the backward pass.
MemoryUse explain(std::int64_t total) {
  auto use = ledger();
  use[MemoryCategory::activations] = std::max<std::int64_t>(0, total - use.total());
  return use;
}

}  // namespace

MemoryScope::MemoryScope(MemoryCategory category, Device const& device)
    : previous_(exchange_host_category(category)), category_(category), device_(device) {
  if (device.kind == DeviceKind::cuda) allocated_before_ = allocated(device).current;
}

MemoryScope::~MemoryScope() {
  exchange_host_category(previous_);
  if (device_.kind == DeviceKind::cuda && lasting(category_))
    ledger()[category_] += allocated(device_).current - allocated_before_;
}

MemoryUse live_memory(Device const& device) {
  return device.kind == DeviceKind::cpu ? host_live_memory() : explain(allocated(device).current);
}

MemoryUse peak_memory(Device const& device) {
  return device.kind == DeviceKind::cpu ? host_peak_memory()
                                        : explain(std::max(allocated(device).peak, noted_peak()));
}

void reset_peak_memory(Device const& device) {
  if (device.kind == DeviceKind::cpu) return reset_host_peak_memory();
  noted_peak() = 0;
  c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(device.index));
}

void note_peak(std::int64_t total, Device const& device) {
  if (device.kind == DeviceKind::cuda) noted_peak() = std::max(noted_peak(), total);
}

double reserved_memory(Device const& device) {
  if (device.kind == DeviceKind::cpu) return host_reserved_memory();
  auto const stats =
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device.index));
  return static_cast<double>(
      stats.reserved_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
          .current);
}

}  // namespace stratagem::gpu
