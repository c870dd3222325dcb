#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "comm/collective_log.hpp"
#include "comm/remote_memory.hpp"
#include "comm/work/work.hpp"

namespace stratagem {

/// Collectives and point-to-point on tensors within one group of ranks.
///
/// Tensors are contiguous, on this rank's device, and belong to the operation until its Work was
/// waited for. All ranks of the group call the collectives in the same order, with equal sizes and
/// types, and with wholes that begin at the same place in their storages; collectives() tells
/// whether they do. Sums on the CPU are made in rank order, ((t_0 + t_1) + t_2) + ..., whatever the
/// size of the tensor or the number of ranks per node, so that they do not depend on how a buffer
/// is cut; 16-bit floats are summed in fp32 and rounded once. On a GPU the order is NCCL's.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view backend() const = 0;

  /// A zeroed 1-D tensor of `numel` elements in the memory that this group moves best.
  virtual at::Tensor allocate(std::int64_t numel, at::ScalarType type) = 0;

  /// tensor <- sum over ranks. Each rank sends 2 (N-1)/N of its bytes.
  Work all_reduce(at::Tensor const& tensor);
  /// output [n] <- this rank's n-th part of the sum of input [N n]. Sends (N-1)/N of input.
  Work reduce_scatter(at::Tensor const& output, at::Tensor const& input);
  /// output [N n] <- input [n] of all ranks, in rank order; input may be its own part of output.
  Work all_gather(at::Tensor const& output, at::Tensor const& input);
  /// tensor <- tensor of rank `root`.
  Work broadcast(at::Tensor const& tensor, int root);
  Work barrier();
  /// What was called of these, by this rank.
  virtual CollectiveLog const& collectives() const { return collectives_; }

  /// Matched by (peer, tag) in order; tag in [0, max_tag]. A message to oneself is not possible.
  virtual Work send(at::Tensor const& tensor, int peer, int tag) = 0;
  virtual Work receive(at::Tensor const& tensor, int peer, int tag) = 0;
  static constexpr int max_tag = 16383;

  /// Memory of `numel` elements on this rank, zeroed, perhaps none, that the others write and read.
  /// Goes before the communicator does, collectively. Collective; AgreedError(environment) where it
  /// cannot be had.
  virtual std::unique_ptr<RemoteMemory> share_memory(std::int64_t numel, at::ScalarType type);

  /// Bytes this rank has sent since the communicator was made.
  virtual std::int64_t bytes_sent() const = 0;

 private:
  // What backends do; the arguments are as above.
  virtual Work start_all_reduce(at::Tensor const& tensor) = 0;
  virtual Work start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) = 0;
  virtual Work start_all_gather(at::Tensor const& output, at::Tensor const& input) = 0;
  virtual Work start_broadcast(at::Tensor const& tensor, int root) = 0;
  virtual Work start_barrier() = 0;

  CollectiveLog collectives_;
};

/// Bytes in a tensor's elements.
inline std::int64_t bytes_of(at::Tensor const& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

}  // namespace stratagem
