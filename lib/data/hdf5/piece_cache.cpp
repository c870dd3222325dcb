#include "data/hdf5/piece_cache.hpp"

#include <algorithm>
#include <utility>

namespace stratagem {

PieceCache::Content PieceCache::get(std::int64_t number,
                                    std::function<std::vector<std::byte>()> const& unpack) {
  if (auto const found = find(number)) return found;
  auto const content = std::make_shared<std::vector<std::byte> const>(unpack());
  std::lock_guard const lock(mutex_);
  entries_.push_front({number, content});
  if (entries_.size() > most_) entries_.pop_back();
  return content;
}

PieceCache::Content PieceCache::find(std::int64_t number) {
  std::lock_guard const lock(mutex_);
  auto const found = std::ranges::find(entries_, number, &Entry::number);
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().content;
}

}  // namespace stratagem
