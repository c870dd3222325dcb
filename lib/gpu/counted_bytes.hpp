#pragma once

#include <cstdint>

#include "gpu/memory.hpp"

namespace stratagem::gpu {

/// Host memory of a tensor that LibTorch's allocator did not make. While this lives, live_memory()
/// and peak_memory() of the CPU count it, in the category of the scope in which it was made.
class CountedBytes {
 public:
  explicit CountedBytes(std::int64_t bytes);
  ~CountedBytes();
  CountedBytes(CountedBytes const&) = delete;
  CountedBytes& operator=(CountedBytes const&) = delete;

 private:
  std::int64_t bytes_;
  MemoryCategory category_;
};

}  // namespace stratagem::gpu
