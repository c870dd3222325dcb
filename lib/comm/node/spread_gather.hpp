#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "comm/node/node_operation.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// All-gather by ranks of several nodes: each part crosses to another node once, to one of its
/// ranks, of which the others read it. A node sends S (M-1)/M of the S gathered bytes; by
/// SlicedCollective it is R times as much.
class SpreadGather final : public NodeOperation {
 public:
  /// Arguments as those of ChainedSum; uses tag `tag`.
  SpreadGather(mpi::Comm const& comm, NodeGroup const& group, at::Tensor input, at::Tensor output,
               std::uint64_t number, int tag);

 private:
  std::optional<std::int64_t> place() override;
  State move() override;
  void end() override;

  /// Exchanges a piece of this rank's part with the ranks of the same place on other nodes.
  void exchange(std::int64_t piece);
  /// Copies a piece of the parts that `rank` of this node has, its own and those from other nodes.
  void copy(int rank, std::int64_t piece);
  std::span<std::byte> part(int node, int rank, std::int64_t piece) const;

  static constexpr std::int64_t piece_bytes = unasked_bytes;
  static constexpr std::size_t most_under_way = 16;

  mpi::Comm comm_;
  at::Tensor shared_;  ///< output, or its copy in the arena
  int nodes_, node_;
  int tag_;
  Slices sliced_;
  std::int64_t piece_;                               ///< elements per piece
  std::int64_t pieces_;                              ///< of a part
  std::int64_t exchanged_ = 0;                       ///< pieces that have arrived
  std::deque<std::vector<mpi::Request>> under_way_;  ///< the pieces after these
  std::vector<std::int64_t> copied_;                 ///< pieces, by rank of this node
};

}  // namespace stratagem
