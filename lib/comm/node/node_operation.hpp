#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "comm/mpi/operations.hpp"
#include "comm/node/node_group.hpp"

namespace stratagem {

/// A collective in which the ranks of a node read and write each other's tensors. They tell each
/// other where these are, then move the data, and end when all have done their share.
class NodeOperation : public Operation {
 public:
  std::string_view name() const final { return name_of(kind_); }
  State advance() final;
  bool collective() const final { return true; }
  std::int64_t in_flight() const override;

 protected:
  using Kind = SlicedCollective::Kind;

  /// `input` and `output` as those of SlicedCollective; `number` counts the collectives of the
  /// group from 1 on, alike on all ranks.
  NodeOperation(NodeGroup const& group, Kind kind, at::Tensor input, at::Tensor output,
                std::uint64_t number);

  Kind kind() const { return kind_; }
  at::Tensor const& input() const { return input_; }
  at::Tensor const& output() const { return output_; }
  NodeGroup const& group() const { return group_; }

  // While the data move:
  /// Where the tensor of a rank is; only if all of them are in the arena.
  std::byte* tensor_of(int rank) const { return group_.at(rank, mark(rank).place); }
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

  NodeMark& mark(int rank) const { return group_.mark(rank, number_); }
  State start();
  void tell();
  bool all_told() const;
  bool all_served() const;
  State finish();

  NodeGroup const& group_;
  Kind kind_;
  at::Tensor input_, output_;
  std::uint64_t number_;
  Stage stage_ = Stage::idle;
};

}  // namespace stratagem
