#include "gpu/pinned_pool.hpp"

namespace stratagem::gpu {

std::shared_ptr<PinnedBuffer> PinnedPool::take(std::size_t bytes) {
  std::unique_ptr<PinnedBuffer> buffer;
  {
    std::lock_guard const lock(shelf_->mutex);
    if (auto const found = shelf_->free.find(bytes); found != shelf_->free.end())
      buffer = std::move(shelf_->free.extract(found).mapped());
  }
  if (!buffer) buffer = std::make_unique<PinnedBuffer>(shelf_->device, bytes);
  return {buffer.release(), [shelf = shelf_](PinnedBuffer* used) {
            std::unique_ptr<PinnedBuffer> back(used);
            std::lock_guard const lock(shelf->mutex);
            shelf->free.emplace(back->size(), std::move(back));
          }};
}

}  // namespace stratagem::gpu
