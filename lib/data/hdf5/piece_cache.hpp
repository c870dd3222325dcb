#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace stratagem {

/// The pieces that were unpacked last. Any number of threads may ask at once.
class PieceCache {
 public:
  using Content = std::shared_ptr<std::vector<std::byte> const>;

  /// Keeps `most_pieces`.
  explicit PieceCache(std::size_t most_pieces) : most_(most_pieces) {}

  /// Piece `number`, by `unpack` if it is not here. Two threads that need it at the same time may
  /// both unpack it.
  Content get(std::int64_t number, std::function<std::vector<std::byte>()> const& unpack);

 private:
  struct Entry {
    std::int64_t number;
    Content content;
  };

  Content find(std::int64_t number);

  std::size_t most_;
  std::mutex mutex_;
  std::list<Entry> entries_;  ///< the one used last comes first; under mutex_
};

}  // namespace stratagem
