#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/node/arena.hpp"

namespace stratagem {

/// What a rank tells the others of one collective, in its segment.
struct NodeMark {
  /// Number of the collective for which the members below hold; they are written before.
  alignas(64) std::atomic<std::uint64_t> told;
  std::int32_t kind, type;
  std::int64_t numel;  ///< of input
  std::int64_t place;  ///< of what the others read, in this rank's segment; -1: not there
  std::atomic<std::int64_t> published;  ///< see NodeOperation::publish
  /// Number of the collective of which this rank has written and read all that is others'.
  alignas(64) std::atomic<std::uint64_t> served;
  /// Number of the last collective with this mark that is over on this rank, which alone reads it.
  std::uint64_t over;
};

/// The ranks of one group that are on this node. They find each other's tensors and marks in the
/// memory that all ranks of the node share.
class NodeGroup {
 public:
  static constexpr std::size_t marks = 8;
  static constexpr std::size_t room = marks * sizeof(NodeMark);  ///< of a rank [B]

  /// A rank of the group: its rank in the arena, and the place of its marks in its segment, which
  /// begin as zeros.
  struct Member {
    int rank = 0;
    std::int64_t marks = 0;
  };
  /// `members` in the order of their ranks in the group; one of them is this rank.
  NodeGroup(std::shared_ptr<NodeArena> arena, std::vector<Member> members);

  /// Among the members.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }

  std::optional<std::int64_t> place_of(void const* data) const { return arena_->place_of(data); }
  at::Tensor room_for(at::Tensor const& tensor) const { return arena_->room_for(tensor); }
  std::optional<at::Tensor> allocate(std::int64_t numel, at::ScalarType type) const {
    return arena_->allocate(numel, type);
  }

  /// A place in the segment of a member.
  std::byte* at(int member, std::int64_t place) const {
    return arena_->at(members_[static_cast<std::size_t>(member)].rank, place);
  }
  /// A member's mark for the `number`-th collective.
  NodeMark& mark(int member, std::uint64_t number) const {
    auto* const first = at(member, members_[static_cast<std::size_t>(member)].marks);
    return reinterpret_cast<NodeMark*>(first)[number % marks];
  }

 private:
  std::shared_ptr<NodeArena> arena_;
  std::vector<Member> members_;
  int rank_;
};

}  // namespace stratagem
