#include "gpu/host_memory.hpp"

#include <atomic>
#include <limits>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "gpu/counted_bytes.hpp"

namespace stratagem::gpu {
namespace {

/// The purposes of the live tensors: "parameters 1.5 GiB, gradients 1.5 GiB".
std::string in_words(MemoryUse const& use) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < memory_categories; ++i)
    if (use.bytes[i] > 0)
      parts.push_back(
          str(memory_category_names[i], " ", format_bytes(static_cast<double>(use.bytes[i]))));
  return parts.empty() ? "nothing" : join(parts, ", ");
}

thread_local MemoryCategory current_category = MemoryCategory::workspace;

/// Counts what it allocates. Each block follows 64 bytes with its size and category, so that
/// freeing needs no table, and blocks stay aligned to 64 bytes.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &free_block, c10::DeviceType::CPU};
    auto* block = static_cast<std::byte*>(take(bytes + header_bytes));
    auto* header = new (block) Header{static_cast<std::int64_t>(bytes), current_category};
    add(header->category, header->bytes);
    void* data = block + header_bytes;
    return {data, data, &free_block, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* destination, void const* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }

  void add(MemoryCategory category, std::int64_t bytes) {
    live_[static_cast<std::size_t>(category)].fetch_add(bytes, std::memory_order_relaxed);
    auto const total = live_total_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (total > peak_total_.load(std::memory_order_relaxed)) note_peak(total);
  }
  void subtract(MemoryCategory category, std::int64_t bytes) {
    live_[static_cast<std::size_t>(category)].fetch_sub(bytes, std::memory_order_relaxed);
    live_total_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  MemoryUse live() const { return load(live_); }
  MemoryUse peak() const { return load(at_peak_); }
  void reset_peak() {
    peak_total_ = 0;
    note_peak(live_total_);
  }

 private:
  struct Header {
    std::int64_t bytes;
    MemoryCategory category;
  };
  using Counters = std::array<std::atomic<std::int64_t>, memory_categories>;
  static constexpr std::size_t header_bytes = 64;
  static_assert(sizeof(Header) <= header_bytes);

  static MemoryUse load(Counters const& counters) {
    MemoryUse use;
    for (std::size_t i = 0; i < memory_categories; ++i)
      use.bytes[i] = counters[i].load(std::memory_order_relaxed);
    return use;
  }
  static void free_block(void* data);

  void* take(std::size_t bytes) const {
    try {
      return c10::alloc_cpu(bytes);
    } catch (c10::Error const&) {
      throw Error(ExitCode::out_of_memory,
                  str("no host memory for a tensor of ", format_bytes(static_cast<double>(bytes))),
                  str(format_bytes(static_cast<double>(available_bytes())),
                      " are left; the tensors there are hold ", in_words(live())),
                  "make the batch smaller, recompute blocks in the backward pass, or take a "
                  "strategy that shards");
    }
  }
  void note_peak(std::int64_t total) {
    auto highest = peak_total_.load(std::memory_order_relaxed);
    while (total > highest && !peak_total_.compare_exchange_weak(highest, total)) {
    }
    for (std::size_t i = 0; i < memory_categories; ++i)
      at_peak_[i].store(live_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

  Counters live_{};
  Counters at_peak_{};
  std::atomic<std::int64_t> live_total_ = 0;
  std::atomic<std::int64_t> peak_total_ = 0;
};

/// One per process, like LibTorch's CPU allocator.
CountingAllocator& allocator() {
  static auto* instance = new CountingAllocator;  // lives longer than every tensor
  return *instance;
}

void CountingAllocator::free_block(void* data) {
  if (data == nullptr) return;
  auto* block = static_cast<std::byte*>(data) - header_bytes;
  auto const& header = *reinterpret_cast<Header*>(block);
  allocator().subtract(header.category, header.bytes);
  c10::free_cpu(block);
}

}  // namespace

CountedBytes::CountedBytes(std::int64_t bytes) : bytes_(bytes), category_(current_category) {
  allocator().add(category_, bytes_);
}

CountedBytes::~CountedBytes() {
  allocator().subtract(category_, bytes_);
}

void install_host_allocator() {
  // One arena on the program break: never mmap, never returned to the kernel, so blocks of any size
  // are reused in place.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_TOP_PAD, 16 << 20);
  ::mallopt(M_ARENA_MAX, 1);
  c10::SetCPUAllocator(&allocator(), 1);
}

MemoryUse host_live_memory() {
  return allocator().live();
}
MemoryUse host_peak_memory() {
  return allocator().peak();
}
void reset_host_peak_memory() {
  allocator().reset_peak();
}

double host_reserved_memory() {
  struct mallinfo2 const heap = ::mallinfo2();
  return static_cast<double>(heap.arena) + static_cast<double>(heap.hblkhd);
}

MemoryCategory exchange_host_category(MemoryCategory category) {
  return std::exchange(current_category, category);
}

}  // namespace stratagem::gpu
