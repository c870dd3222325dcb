#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <ATen/core/Tensor.h>

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
  std::atomic<std::int64_t> published;  ///< see NodeOperation::publish
  /// Number of the collective of which this rank has written and read all that is others'.
  alignas(64) std::atomic<std::uint64_t> served;
  /// Number of the last collective with this mark that is over on this rank, which alone reads it.
  std::uint64_t over;
};

/// A collective in which the ranks of a node read and write each other's tensors. They tell each
/// other where these are, then move the data, and end when all have done their share.
class NodeOperation : public Operation {
 public:
  std::string_view name() const final { return name_of(kind_); }
  State advance() final;
  bool collective() const final { return true; }
  std::int64_t in_flight() const override;

  static constexpr std::size_t marks = 8;
  static constexpr std::size_t room = marks * sizeof(NodeMark);  ///< in every segment [B]

 protected:
  using Kind = SlicedCollective::Kind;

  /// `input` and `output` as those of SlicedCollective; `number` counts the collectives of the
  /// arena from 1 on, alike on all ranks.
  NodeOperation(NodeArena const& arena, Kind kind, at::Tensor input, at::Tensor output,
                std::uint64_t number);

  Kind kind() const { return kind_; }
  at::Tensor const& input() const { return input_; }
  at::Tensor const& output() const { return output_; }
  NodeArena const& arena() const { return arena_; }

  // While the data move:
  /// Where the tensor of a rank is; only if all of them are in the arena.
  std::byte* tensor_of(int rank) const { return arena_.at(rank, mark(rank).place); }
  bool all_in_arena() const;
  /// Says that the first `pieces` pieces of this rank's tensor are there to be read.
  void publish(std::int64_t pieces);
  std::int64_t published(int rank) const;

 private:
  enum class Stage { idle, told, moving, served };

  /// The first step: where the others find this rank's tensor in its segment, or nothing.
  virtual std::optional<std::int64_t> place() = 0;
  /// Goes on with the share of this rank, which is finished at the end.
  virtual State move() = 0;
  /// The last step: all ranks have done their share.
  virtual void end() {}

  NodeMark& mark(int rank) const;
  State start();
  void tell();
  bool all_told() const;
  bool all_served() const;
  State finish();

  NodeArena const& arena_;
  Kind kind_;
  at::Tensor input_, output_;
  std::uint64_t number_;
  Stage stage_ = Stage::idle;
};

}  // namespace stratagem
