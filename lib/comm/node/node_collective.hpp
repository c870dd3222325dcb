#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/mpi/operations.hpp"
#include "comm/node/arena.hpp"

namespace stratagem {

/// What a rank tells the others of one collective, at the beginning of its segment.
struct NodeMark {
  /// Number of the collective for which the members below hold; they are written before.
  alignas(64) std::atomic<std::uint64_t> told;
  std::int32_t kind, type;
  std::int64_t numel;  ///< of input
  std::int64_t place;  ///< of what the others read, in this rank's segment; -1: not there
  /// Number of the collective of which this rank has written and read all that is others'.
  alignas(64) std::atomic<std::uint64_t> served;
  /// Number of the last collective with this mark that is over on this rank, which alone reads it.
  std::uint64_t over;
};

/// All-reduce, reduce-scatter and all-gather by ranks that read and write each other's tensors.
///
/// Rank r sums slice r of all ranks' tensors in rank order and writes it where it is needed: the
/// bits are those of SlicedCollective. If the tensor of some rank is not in its arena, all ranks
/// take `messages` instead, the same collective.
class NodeCollective final : public Operation {
 public:
  using Kind = SlicedCollective::Kind;

  /// Arguments as those of SlicedCollective; `number` counts the collectives of the arena from 1
  /// on, alike on all ranks.
  NodeCollective(NodeArena const& arena, Kind kind, at::Tensor input, at::Tensor output,
                 std::uint64_t number, std::unique_ptr<Operation> messages);

  std::string_view name() const override { return messages_->name(); }
  State advance() override;
  bool collective() const override { return true; }
  std::int64_t in_flight() const override;

  static constexpr std::size_t marks = 8;
  static constexpr std::size_t room = marks * sizeof(NodeMark);  ///< in every segment [B]

 private:
  enum class Stage { idle, told, moving, served, by_messages };

  NodeMark& mark(int rank) const;
  State start();
  State go_on_together();
  State finish();
  /// What the others read of this rank: after this, it is in the arena if it can be.
  std::optional<std::int64_t> published_place();
  void tell();
  bool all_told() const;
  bool all_served() const;
  /// The next piece of this rank's slice, or of all parts that it gathers.
  void move_piece();
  void sum_piece(std::int64_t begin, std::int64_t count);
  void gather_piece(std::int64_t begin, std::int64_t count);

  static constexpr std::int64_t piece_bytes = 1 << 17;

  NodeArena const& arena_;
  Kind kind_;
  at::Tensor input_, output_;
  std::uint64_t number_;
  std::unique_ptr<Operation> messages_;
  Slices sliced_;          ///< the tensor of N slices
  std::int64_t next_ = 0;  ///< where the next piece begins, within a slice
  Stage stage_ = Stage::idle;
};

}  // namespace stratagem
