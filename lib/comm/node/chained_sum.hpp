#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/node/node_operation.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// All-reduce and reduce-scatter by ranks of several nodes, in rank order: the bits are those of
/// SlicedCollective, with fewer bytes between nodes.
///
/// Rank r of each node handles the same slices. A node gets the sum over the nodes before it, adds
/// the tensors of its ranks in order, and sends the sum on; the last node has the whole sum, which
/// goes back along the chain (all_reduce) or straight to its owner (reduce_scatter). Pieces follow
/// each other, so that all links are busy. 16-bit floats travel forward as fp32. Of S bytes of fp32
/// a node at an end sends S, others 2 S; by SlicedCollective it is 2 R S (M-1)/M on M nodes of R
/// ranks.
class ChainedSum final : public NodeOperation {
 public:
  /// `comm`: the ranks of all nodes, in the order of nodes, as many on each as in `group`. Uses
  /// tags `tag` and tag + 1. Error(out_of_memory) if no shared memory is left for a tensor of
  /// another memory.
  ChainedSum(mpi::Comm const& comm, NodeGroup const& group, Kind kind, at::Tensor input,
             at::Tensor output, std::uint64_t number, int tag);

 private:
  /// In the order in which a piece passes through them; it never overtakes an older one.
  enum class Stage { receiving, passing_on, awaiting, handing_back, ended };
  struct Piece {
    std::int64_t number = 0;
    Stage stage = Stage::ended;
    std::vector<mpi::Request> requests = {};
    std::unique_ptr<std::byte[]> sums = nullptr;  ///< the prefix, then the whole sum
  };

  std::optional<std::int64_t> place() override;
  State move() override;
  void end() override;

  void begin(std::int64_t number);
  /// From one stage to the next, whose messages it starts.
  void go_on(Piece& piece);
  void add_own(Piece& piece);
  void deliver(Piece const& piece);

  Piece& piece(std::int64_t number) {
    return ring_[static_cast<std::size_t>(number) % ring_.size()];
  }
  /// Where it lies in this rank's tensor.
  std::span<std::byte> part(Piece const& piece) const;
  std::int64_t count(Piece const& piece) const;                    ///< elements
  std::span<std::byte> sums_of(Piece const& piece) const;          ///< before they are rounded
  std::span<std::byte> values_of(Piece const& piece) const;        ///< afterwards
  int owner(Piece const& piece) const;                             ///< node, of reduce_scatter
  std::optional<int> sender_of_total(Piece const& piece) const;    ///< node, if it sends to this
  std::optional<int> receiver_of_total(Piece const& piece) const;  ///< node, if this sends to it
  int rank_on(int node) const { return node * group().size() + group().rank(); }

  static constexpr std::int64_t piece_bytes = unasked_bytes;  ///< of sums
  static constexpr int waiting_pieces = 12;  ///< beside one on each link there and back

  mpi::Comm comm_;
  at::Tensor shared_;  ///< input, or its copy in the arena
  int nodes_, node_;
  int tag_;
  Slices sliced_;
  std::int64_t sum_size_;         ///< of one [B]
  std::int64_t piece_;            ///< elements per piece
  std::int64_t pieces_of_slice_;  ///< in one slice
  std::int64_t pieces_;           ///< of this rank
  std::int64_t begun_ = 0, ended_ = 0;
  std::vector<Piece> ring_;  ///< the pieces between ended_ and begun_
};

}  // namespace stratagem
