#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/work/operation.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// A tensor of N slices with `slice` elements each; slice p is rank p's part. If N does not divide
/// the tensor, the last slices are shorter or empty.
struct Slices {
  std::byte* data;
  std::int64_t numel;         ///< of the whole tensor
  std::int64_t slice;         ///< elements per rank
  std::int64_t element_size;  ///< [B]

  /// The part [begin, begin + count) of slice `rank`, cut at the end of the slice and of the
  /// tensor.
  std::span<std::byte> part(int rank, std::int64_t begin, std::int64_t count) const;
};

/// What Open MPI sends over TCP without asking the receiver first: its eager limit is 64 KiB with
/// headers. On a slow link questions and answers would wait behind the pieces that are on their
/// way.
inline constexpr std::int64_t unasked_bytes = 63 << 10;

/// All-reduce, reduce-scatter and all-gather in one. The ranks exchange pieces of every slice, so
/// that each rank receives all versions of its own piece, sums them in rank order, and sends the
/// sum to all. Pieces limit the scratch memory; their number does not change the result.
class SlicedCollective final : public Operation {
 public:
  enum class Kind { all_reduce, reduce_scatter, all_gather };

  /// all_reduce: `input` and `output` are the same tensor. reduce_scatter: input has N slices,
  /// output has one. all_gather: the other way round. `tags` tags, starting at `tag`, are
  /// available. `several_nodes`: of the ranks; the same on all.
  SlicedCollective(mpi::Comm const& comm, Kind kind, at::Tensor input, at::Tensor output, int tag,
                   bool several_nodes);

  std::string_view name() const override;
  State advance() override;
  bool collective() const override { return true; }
  std::int64_t in_flight() const override;

  /// Bytes that this rank sends.
  std::int64_t bytes_to_send() const;

  static constexpr int tags = 16;

 private:
  struct Piece {
    enum class State { idle, exchanging, gathering } state = State::idle;
    int tag = 0;             ///< of the exchange; the gather uses the next one
    std::int64_t begin = 0;  ///< within the slice
    std::vector<mpi::Request> requests;
    std::unique_ptr<std::byte[]> scratch;  ///< the other ranks' versions of this rank's piece
  };

  void start(Piece& piece);
  /// True if it made progress.
  bool advance(Piece& piece);
  void exchange(Piece& piece);
  void reduce(Piece& piece);
  void gather(Piece& piece);

  mpi::Comm comm_;
  Kind kind_;
  at::Tensor input_, output_;
  Slices sliced_;             ///< the tensor of N slices
  std::byte* own_;            ///< this rank's slice: a part of sliced_, or the other tensor
  std::int64_t piece_bytes_;  ///< at most
  std::int64_t piece_;        ///< elements per piece
  std::int64_t next_ = 0;     ///< where the next piece begins
  bool started_ = false;
  std::vector<Piece> pieces_;  ///< under way, or idle
};

std::string_view name_of(SlicedCollective::Kind kind);

/// The tensor of N slices of a collective among `ranks` ranks; arguments as above.
Slices slices_of(SlicedCollective::Kind kind, at::Tensor const& input, at::Tensor const& output,
                 int ranks);

/// From the root to all ranks along a binomial tree.
class Broadcast final : public Operation {
 public:
  Broadcast(mpi::Comm const& comm, at::Tensor tensor, int root, int tag);
  std::string_view name() const override { return "broadcast"; }
  State advance() override;
  bool collective() const override { return true; }
  std::int64_t in_flight() const override;
  std::int64_t bytes_to_send() const;

 private:
  mpi::Comm comm_;
  at::Tensor tensor_;
  int parent_;  ///< -1 at the root
  std::vector<int> children_;
  int tag_;
  enum class Stage { idle, receiving, sending } stage_ = Stage::idle;
  std::vector<mpi::Request> requests_;
};

/// Dissemination: in round k, every rank signals the rank 2^k further on.
class Barrier final : public Operation {
 public:
  Barrier(mpi::Comm const& comm, int tag) : comm_(comm), tag_(tag) {}
  std::string_view name() const override { return "barrier"; }
  State advance() override;
  bool collective() const override { return true; }

 private:
  mpi::Comm comm_;
  int tag_;
  int distance_ = 0;
  std::vector<mpi::Request> requests_;
};

class PointToPoint final : public Operation {
 public:
  enum class Direction { send, receive };
  PointToPoint(mpi::Comm const& comm, Direction direction, at::Tensor tensor, int peer, int tag)
      : comm_(comm), direction_(direction), tensor_(std::move(tensor)), peer_(peer), tag_(tag) {}
  std::string_view name() const override {
    return direction_ == Direction::send ? "send" : "receive";
  }
  State advance() override;
  bool collective() const override { return false; }
  std::int64_t in_flight() const override;

 private:
  mpi::Comm comm_;
  Direction direction_;
  at::Tensor tensor_;
  int peer_;
  int tag_;
  bool started_ = false;
  std::vector<mpi::Request> requests_;
};

}  // namespace stratagem
