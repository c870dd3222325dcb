#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "gpu/stream.hpp"

namespace stratagem::gpu {

/// Pinned buffers that are reused, because allocating one takes about a millisecond. Any thread may
/// use the pool.
class PinnedPool {
 public:
  explicit PinnedPool(Device const& device) : shelf_(std::make_shared<Shelf>(device)) {}

  /// A buffer of exactly `bytes`; it returns to the pool when its last owner releases it.
  std::shared_ptr<PinnedBuffer> take(std::size_t bytes);

 private:
  struct Shelf {
    explicit Shelf(Device const& of) : device(of) {}

    Device device;
    std::mutex mutex;
    std::multimap<std::size_t, std::unique_ptr<PinnedBuffer>> free;  ///< under mutex
  };
  std::shared_ptr<Shelf> shelf_;  ///< lives as long as the last buffer in use
};

}  // namespace stratagem::gpu
