#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "gpu/stream.hpp"

namespace stratagem::gpu {

/// Pinned buffers that are used again: to make one takes about a millisecond. Any thread.
class PinnedPool {
 public:
  explicit PinnedPool(Device const& device) : shelf_(std::make_shared<Shelf>(device)) {}

  /// One of exactly so many bytes, which comes back when its last owner lets it go.
  std::shared_ptr<PinnedBuffer> take(std::size_t bytes);

 private:
  struct Shelf {
    explicit Shelf(Device const& of) : device(of) {}

    Device device;
    std::mutex mutex;
    std::multimap<std::size_t, std::unique_ptr<PinnedBuffer>> free;  ///< under mutex
  };
  std::shared_ptr<Shelf> shelf_;  ///< lives as long as a buffer that is out
};

}  // namespace stratagem::gpu
