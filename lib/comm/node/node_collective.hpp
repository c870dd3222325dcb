#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "comm/node/node_operation.hpp"

namespace stratagem {

/// All-reduce, reduce-scatter and all-gather by ranks of one node.
///
/// Rank r sums slice r of all ranks' tensors in rank order and writes it where it is needed: the
/// bits are those of SlicedCollective. If the tensor of some rank is not in its arena, all ranks
/// take `messages` instead, the same collective.
class NodeCollective final : public NodeOperation {
 public:
  /// Arguments as those of NodeOperation.
  NodeCollective(NodeGroup const& group, Kind kind, at::Tensor input, at::Tensor output,
                 std::uint64_t number, std::unique_ptr<Operation> messages);

 private:
  std::optional<std::int64_t> place() override;
  State move() override;
  /// A piece of this rank's slice, or of all parts that it gathers.
  void sum_piece(std::int64_t begin, std::int64_t count);
  void gather_piece(std::int64_t begin, std::int64_t count);

  static constexpr std::int64_t piece_bytes = 1 << 17;

  std::unique_ptr<Operation> messages_;
  Slices sliced_;          ///< the tensor of N slices
  std::int64_t next_ = 0;  ///< where the next piece begins, within a slice
};

}  // namespace stratagem
