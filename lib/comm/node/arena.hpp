#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/node/shared_segment.hpp"

namespace stratagem {

/// Memory of the ranks of a node that each of them reads and writes: a segment per rank, in which
/// only its own rank allocates. Tensors keep it alive.
class NodeArena : public std::enable_shared_from_this<NodeArena> {
 public:
  /// This rank's segment, one of `ranks`: at most as much memory as the machine has.
  /// Error(environment) if the system refuses.
  explicit NodeArena(int ranks);
  NodeArena(NodeArena const&) = delete;
  NodeArena& operator=(NodeArena const&) = delete;

  std::string address() const { return own_.address(); }
  /// Maps the segments of all ranks, in rank order; `rank`: this one. Error(environment) if one of
  /// them cannot be opened.
  void open(std::vector<std::string> const& addresses, int rank);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(segments_.size()); }

  /// A zeroed tensor in this rank's segment; nothing if there is no memory left. Counts as a tensor
  /// of the memory scope.
  std::optional<at::Tensor> allocate(std::int64_t numel, at::ScalarType type);

  /// The place of so many bytes in this rank's segment, zeroed, which are never given back and do
  /// not count. Error(environment) if there is no memory left.
  std::int64_t reserve(std::size_t bytes);

  /// The tensor itself if it is in this rank's segment, else one like it that is; its values are
  /// not copied. Error(out_of_memory) if there is no memory left.
  at::Tensor room_for(at::Tensor const& tensor);

  /// Where a tensor begins in this rank's segment; nothing if it is elsewhere.
  std::optional<std::int64_t> place_of(void const* data) const;
  /// A place in the segment of a rank.
  std::byte* at(int rank, std::int64_t place) const {
    return segments_[static_cast<std::size_t>(rank)].data() + place;
  }

 private:
  struct Range {
    std::size_t begin, bytes;
  };
  class Lease;

  /// Pages that were free; nothing if there are none.
  std::optional<Range> take(std::size_t bytes);
  void give_back(Range const& range);

  SharedSegment own_;
  std::vector<SharedSegment> others_;
  std::vector<std::span<std::byte>> segments_;  ///< by rank
  int rank_ = 0;
  std::mutex mutex_;
  std::vector<Range> free_;  ///< in order of place, none adjacent; under mutex_
};

}  // namespace stratagem
